"""What an agent is, and every agent; nothing here imports Ray, a web framework or :mod:`serving`."""

__version__ = "0.2.0"
