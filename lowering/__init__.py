"""From core kernels to buffers, schedules, memory plans and C."""
