"""
Phase `buffer`: values become buffers, kernels become functions of loops over scalars, functions of
mathematics become arithmetic, and weights are packed as the loops read them.
"""
