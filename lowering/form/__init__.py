"""
Phase `kernels`: which ops form one kernel, the memory layouts of the values between kernels, and
the strategy of each kernel. All values are still `core` values.
"""
