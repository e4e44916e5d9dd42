"""The shells that gscope completes in, for commands that need only their names."""

SHELLS = ("bash", "zsh", "fish")
