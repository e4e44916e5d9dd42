"""Which samples of packets leave the answers of a query set sound: compatible sets and schemes."""
