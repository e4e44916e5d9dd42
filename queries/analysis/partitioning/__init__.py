"""Query-aware partitioning: by which functions of packet fields a query set may be divided."""
