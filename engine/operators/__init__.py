"""The bookkeeping half of HFTA operators: which rows a step reads, keeps and forgets."""
