"""Every setting of every agent says what it means, as `understudy agents NAME` prints it."""

from __future__ import annotations

import pytest

from agents import catalogue


@pytest.mark.parametrize("name", sorted(catalogue.entries()))
def test_every_setting_is_described_on_one_line(name: str) -> None:
    settings = catalogue.get(name).load_class().Settings
    said = {field: about.description or "" for field, about in settings.model_fields.items()}
    assert [field for field, text in said.items() if not text.endswith(".") or "\n" in text] == []
