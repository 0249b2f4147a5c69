"""Campaigns for faults: random programs, damaged files, hostile inputs, planted mistakes."""
