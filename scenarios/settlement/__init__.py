"""Settling the day of a small bank, and coming back after a broken account."""
