"""From partial aggregates to answers."""
