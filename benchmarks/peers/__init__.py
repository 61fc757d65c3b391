"""Other Python systems for durable work on PostgreSQL, under the same workloads.

Each peer is a module that runs one workload per process and prints one JSON line:
``python -m benchmarks.peers.dbos sequential postgresql://...`` with the peer's packages
on PYTHONPATH. ``python -m benchmarks.peers URL`` installs the peers, runs everything
and prints a table.
"""
