"""Printing of the buffer dialect as C: one op, one statement."""
