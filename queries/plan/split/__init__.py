"""The cut of a plan into LFTAs and HFTA nodes."""
