"""Files of nfcapd, nfpcapd and nfdump as a stream of flow records."""
