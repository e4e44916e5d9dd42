"""What a replayed and a live interface share: feeding blocks to LFTAs within a memory budget."""
