"""What lies where in a packet: link layers, IP, transport, tunnels."""
