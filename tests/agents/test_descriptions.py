"""What is said of every agent: in docs/fidelity.md as in the catalogue, and of each setting."""

import re
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.catalogue import built_in

ROW = re.compile(r"^\| `(?P<name>[\w.-]+)` \| (?P<in_paper>\w+) \| (?P<ran>yes|never) \|", re.MULTILINE)


def test_every_agent_has_its_row() -> None:
    page = (Path(__file__).parents[2] / "docs/fidelity.md").read_text()
    told = [(row["name"], row["in_paper"], row["ran"]) for row in ROW.finditer(page)]
    known = [(e.name, e.in_paper, "yes" if e.ran else "never") for e in built_in.BUILT_IN]
    assert told == known


# Agents that other distributions add need not do so.
OWN = sorted(name for name in catalogue.entries() if catalogue.get(name).load_class().__module__.startswith("agents."))


@pytest.mark.parametrize("name", OWN)
def test_every_setting_is_described_on_one_line(name: str) -> None:
    settings = catalogue.get(name).load_class().Settings
    said = {field: about.description or "" for field, about in settings.model_fields.items()}
    assert [field for field, text in said.items() if not text.endswith(".") or "\n" in text] == []


def test_the_examples_of_the_page_on_agents_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/agents.md").read_text()
    names: dict[str, Any] = {"__name__": "echo_agent"}
    for example in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(example, names)
    assert capsys.readouterr().out == "sun?\n"
    counted = names["Counted"](names["EchoSettings"](suffix="!!!"), "counted")
    assert counted.declaration().max_samples == 3
    [reply] = counted.respond(["o"], [names["Draw"](seed=1)])
    assert names["too_short"](None, reply) is None
