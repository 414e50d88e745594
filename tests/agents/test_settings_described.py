"""Every setting of every agent says what it means, as `turinglike agents NAME` prints it."""

from __future__ import annotations

import pytest

from agents import catalogue

# Agents that other distributions add need not do so.
OWN = sorted(name for name in catalogue.entries() if catalogue.get(name).load_class().__module__.startswith("agents."))


@pytest.mark.parametrize("name", OWN)
def test_every_setting_is_described_on_one_line(name: str) -> None:
    settings = catalogue.get(name).load_class().Settings
    said = {field: about.description or "" for field, about in settings.model_fields.items()}
    assert [field for field, text in said.items() if not text.endswith(".") or "\n" in text] == []
