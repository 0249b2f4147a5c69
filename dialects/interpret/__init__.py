"""Reference semantics of the dialects in numpy."""
