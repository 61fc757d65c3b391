"""Tests of the testing kit, and what the kit proves about the product."""
