"""The pages that people look at."""
