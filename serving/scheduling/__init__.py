"""What brings stimuli to workers and answers back: queue, dispatch, recovery, Ray workers, placement."""
