"""Capture of live interfaces: devices, threads, clock, resume and summary."""
