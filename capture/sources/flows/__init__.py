"""Flow records: exports of NetFlow, IPFIX and sFlow, decoded into packets of a fixed layout."""
