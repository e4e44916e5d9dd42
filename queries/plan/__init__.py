"""Logical plan, rewrite rules, the split into LFTAs and HFTAs, explain."""
