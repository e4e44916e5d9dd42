"""Stream logs between hosts: the TCP listener, its checks, and the client of other logs."""
