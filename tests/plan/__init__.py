"""Tests of the plan floor: definitions, patterns, manifests, arguments."""
