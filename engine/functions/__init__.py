"""Functions that Spark does not have built in."""
