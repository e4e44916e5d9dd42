"""HFTA operators: a bookkeeping half and a lowering half each."""
