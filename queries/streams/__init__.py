"""The contract between processes: messages of streams, punctuation, wire format, events."""
