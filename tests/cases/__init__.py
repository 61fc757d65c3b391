"""Failures that users of comparable tools have met, as black-box tests on SQLite.

Each docstring names the case of the collection that the test comes from.
"""
