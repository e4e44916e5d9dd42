"""Low-level queries: code generation, group table, runtime, and the interpreter."""
