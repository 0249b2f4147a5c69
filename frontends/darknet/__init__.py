"""Reader of DarkNet nets: sections of a cfg, and their weights."""
