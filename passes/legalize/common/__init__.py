"""
What several frameworks mean alike, built in `core`: each function is used by legalizations.

Nothing here knows an operator of a framework. Where two frameworks differ, the difference is an
argument that says what it does, not whose it is.
"""
