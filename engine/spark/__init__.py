"""Evaluation of steps on Spark, and the only home of PySpark."""
