"""Every agent by its name: ours, those of installed packages, and any model (``hf:…``, ``openai:…``)."""

from agents.catalogue.built_in import BUILT_IN
from agents.catalogue.lookup import GROUP, NAME, RESERVED, entries, get, members, names, pair
from agents.contract import Entry

__all__ = ["BUILT_IN", "GROUP", "NAME", "RESERVED", "Entry", "entries", "get", "members", "names", "pair"]
