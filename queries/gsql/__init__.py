"""The GSQL language: grammar, nodes, parser, printer."""
