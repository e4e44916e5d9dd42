"""gscope: SQL-like GSQL queries over packets, live and from captures."""

__version__ = "0.1.0"
