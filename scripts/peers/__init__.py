"""What ``scripts/bench_peers.py`` measures, a module for each kind of work; ``programs`` has what the peers run."""
