"""Decoding of packets: link layers, IP, transport, tunnels."""
