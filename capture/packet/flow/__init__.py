"""Flow records as packets: the layout of a record, for kernels, sources and the dissector."""
