"""From LFTAs to the source of one fused kernel."""
