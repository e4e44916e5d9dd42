"""D5 to D8: query sets on one to sixteen hosts, by how packets and work are divided among them."""
