"""
Phase `kernels`: which ops become one kernel, how the values between kernels lie in memory, and by
which strategy each kernel runs. Everything is still on values of `core`.
"""
