"""Confinement of processes that read packets: another user, no capabilities, Landlock, seccomp."""
