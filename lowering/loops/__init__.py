"""
Phase `scheduled`, the loops of kernels: from plain nests of scalars to what runs fast.

Strategies build nests of labeled loops; the `schedule` of a function says how they are cut and
ordered; the passes here do it. What each does is legal because the labeled loops above a body are
independent of each other.
"""
