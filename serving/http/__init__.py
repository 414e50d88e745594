"""The agents behind HTTP: one scheduler, many clients."""
