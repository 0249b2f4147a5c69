"""Printing C."""
