"""Taking rights away from processes that read packets: another user, no capabilities, Landlock, seccomp."""
