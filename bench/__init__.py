"""Benchmarks: compile time, code size, memory and run time per model."""
