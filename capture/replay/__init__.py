"""Replay of captures: inputs on one trace clock, and the compiled bulk path."""
