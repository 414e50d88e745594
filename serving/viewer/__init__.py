"""The page of a run's answers, as a report and live."""
