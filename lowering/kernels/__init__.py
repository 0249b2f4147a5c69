"""Loop nests of the operations that a kernel is made of."""
