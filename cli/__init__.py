"""Arguments in, text out, supervision; one file per command."""
