"""Runnable stories on real data; each is also a test."""
