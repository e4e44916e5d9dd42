"""gscope: SQL-like GSQL queries over packets, live and from captures."""

__version__ = "0.3.0"
