"""
Phase `buffer`: values become buffers, kernels become functions of loops over scalars, mathematical
functions become arithmetic, and weights are packed in the order in which the loops read them.
"""
