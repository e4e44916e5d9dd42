"""Sampling of packets: rates, and the thresholds that they set in kernels."""
