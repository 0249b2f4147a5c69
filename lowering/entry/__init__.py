"""
Phase `scheduled`, the entry function: in-place results, work sharing between threads, the memory
plan, and the splitting of functions that are too long.
"""
