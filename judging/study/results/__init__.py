"""What comes out of a study: export, exclusions, status, stopping, planning."""
