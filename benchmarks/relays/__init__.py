"""Trees of sensors, relays and a run on hosts of their own: bytes on the wire, and kills."""
