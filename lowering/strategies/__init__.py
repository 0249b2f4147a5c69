"""
Strategies: the algorithms for kernels, one per file.

A strategy says which layouts it wants, which schedules it offers for a kernel and what each costs,
and builds the loops. `registry.py` lists all strategies; one that it does not list does not exist.
"""
