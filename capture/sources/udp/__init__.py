"""Datagrams that arrive on a UDP port of this machine."""
