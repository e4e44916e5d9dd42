"""Saving of packets: those that selections accept, in a pcapng file."""
