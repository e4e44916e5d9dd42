"""Flow records: exports of NetFlow and IPFIX, decoded into packets of a fixed layout."""
