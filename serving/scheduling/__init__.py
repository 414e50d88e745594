"""Queue, dispatch, recovery, Ray workers, placement."""
