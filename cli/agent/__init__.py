"""The agent of ``gscope capture``: captures that other hosts request, each a process of its own."""
