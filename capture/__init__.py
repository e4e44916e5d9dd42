"""From the wire to partial aggregates."""
