"""The only home of PySpark: session, JVM, expression lowering."""
