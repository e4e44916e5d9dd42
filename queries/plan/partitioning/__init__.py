"""How rows are divided into partitions: their hash, and the members of each stream."""
