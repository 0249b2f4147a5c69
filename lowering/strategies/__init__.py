"""
Strategies: the algorithms that kernels may run by, a file each.

A strategy says which layouts it wants, which ways there are to run a kernel and what each costs,
and builds the loops. `registry.py` lists all of them; what is in no list is not there.
"""
