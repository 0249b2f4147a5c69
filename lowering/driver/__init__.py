"""
Phase `scheduled`, the function around the kernels: what is computed in place, what threads share,
where buffers lie, and how a function that is too long is cut.
"""
