"""Groups that live across epochs: the fold of the rows of each epoch over time, in columns."""
