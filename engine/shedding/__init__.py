"""Samples whose thresholds follow the load: which rows of an epoch a step leaves out."""
