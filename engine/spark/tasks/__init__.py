"""Steps that Spark's Python tasks compute with Arrow and numpy."""
