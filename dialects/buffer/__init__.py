"""The buffer dialect: loops, vectors and buffers, the last level before C."""
