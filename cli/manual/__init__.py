"""Manual pages, made from the help of the commands."""
