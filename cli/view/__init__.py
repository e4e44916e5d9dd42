"""The live view of answers (``-o view``)."""
