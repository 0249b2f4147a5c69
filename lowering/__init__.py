"""From `core` to C: kernels, buffers, memory, text."""
