"""What a plan reports of itself: text, clocks and bounds of state."""
