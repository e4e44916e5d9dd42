"""The work of a step that Spark's Python tasks do with Arrow and numpy, without SQL."""
