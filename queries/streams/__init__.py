"""The stream contract: messages, punctuation, wire format."""
