"""The scalar functions and operators, one file a family; ``catalog/functions.py`` joins them."""
