"""The job execution actor, its steps, and the boundary around user code."""
