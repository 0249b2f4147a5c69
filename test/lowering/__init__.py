"""Tests of lowering: kernels, buffers, memory, C."""
