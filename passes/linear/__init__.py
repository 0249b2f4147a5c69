"""Passes on convolutions, products and what is linear beside them, and their algebra."""
