"""What an agent is, and every agent.

An agent is a plain Python object that a notebook can load and call; nothing in this package imports Ray, a web
framework or :mod:`serving`. Start with :mod:`agents.contract` and :mod:`agents.catalogue`.
"""

__version__ = "0.2.0"
