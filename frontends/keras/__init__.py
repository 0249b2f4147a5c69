"""Keras: `.keras` files, and models in HDF5 files."""
