"""Packets of live interfaces, from the ring that the kernel maps into the process (TPACKET_V3)."""
