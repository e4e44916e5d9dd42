"""Sinks: tables, growing files, parts of files, and the lock of an output."""
