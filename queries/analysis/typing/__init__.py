"""Types of expressions, calls, constants and conversions."""
