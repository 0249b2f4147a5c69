"""Passes that compute what is known, and drop what is equal, unused or simpler otherwise."""
