"""What runs the agents: stimulus sets, scheduler, Ray workers, record store, reports, the command line."""
