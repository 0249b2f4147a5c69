"""
Phase `scheduled`, the loops of kernels: from plain scalar loop nests to fast code.

Strategies build nests of labeled loops; the `schedule` of a function says how they are tiled and
ordered; the passes here apply it. Each transformation is legal because the labeled loops around a
body are independent of each other.
"""
