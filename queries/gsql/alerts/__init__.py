"""Alerts: thresholds with hysteresis over the epochs of an answer."""
