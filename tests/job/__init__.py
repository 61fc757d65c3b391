"""Tests of the job floor: one attempt at one instance, on the memory store."""
