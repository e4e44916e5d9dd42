"""``gscope status``: how a run stands, from the files in its folder."""
