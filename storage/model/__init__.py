"""The model: values, statuses, errors and digests. Imports nothing of ours."""
