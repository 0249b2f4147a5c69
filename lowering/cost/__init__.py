"""What kernels take on a machine, from their loops, their schedules and measured numbers."""
