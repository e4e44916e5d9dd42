"""Saving of packets: a pcapng file of those of selections, a ring of those of live groups."""
