"""Capture files and pipes: formats, compression and detection."""
