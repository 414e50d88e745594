"""The catalogue beside its docs, its settings' texts, and what makes two runs the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agents import built_in, catalogue
from agents.contract import Settings
from agents.language.chat import ChatAgent
from agents.language.openai_chat import TalkSettings
from agents.language.sent_messages import TruncationSettings
from serving.runs.run_json import digest

ROW = re.compile(r"^\| `(?P<name>[\w.-]+)` \| (?P<in_paper>\w+) \| (?P<ran>yes|never) \|", re.MULTILINE)
# Agents of other distributions need not describe their settings.
OURS = sorted(name for name in catalogue.entries() if catalogue.get(name).load_class().__module__.startswith("agents."))


def test_every_agent_has_its_row_in_the_page_of_fidelity() -> None:
    page = (Path(__file__).parents[2] / "docs/fidelity.md").read_text()
    rows = [(row["name"], row["in_paper"], row["ran"]) for row in ROW.finditer(page)]
    shown = [entry for entry in built_in.BUILT_IN if not entry.hidden]
    assert rows == [(entry.name, entry.in_paper, "yes" if entry.ran else "never") for entry in shown]


@pytest.mark.parametrize("name", OURS)
def test_every_setting_is_described_on_one_line(name: str) -> None:
    fields = catalogue.get(name).load_class().Settings.model_fields
    texts = {field: about.description or "" for field, about in fields.items()}
    assert [field for field, text in texts.items() if not text.endswith(".") or "\n" in text] == []


def digest_of(**chosen: Any) -> str:
    entry = catalogue.get("openai-chat")
    return str(digest([(entry, entry.make({"model": "m", **chosen}))])["digest"])


@pytest.mark.parametrize("field", ["concurrency", "timeout_s", "patience_s", "retries", "key_variable"])
def test_patience_is_no_part_of_a_run(field: str) -> None:
    assert digest_of() == digest_of(**{field: "OTHER" if field == "key_variable" else 7})


@pytest.mark.parametrize("chosen", [{"model": "n"}, {"base_url": "http://127.0.0.1/v1"}, {"seed_bits": 31}])
def test_every_other_setting_is_a_part_of_a_run(chosen: dict[str, Any]) -> None:
    assert digest_of() != digest_of(**chosen)


@pytest.mark.parametrize("settings", [ChatAgent.Settings, TalkSettings])
def test_a_file_counts_by_its_content(tmp_path: Path, settings: type[Settings]) -> None:
    needed = {"checkpoint": "c"} if settings is ChatAgent.Settings else {"model": "m"}

    def identity(name: str, text: str | None) -> dict[str, Any]:
        if text is not None:
            (tmp_path / name).write_text(text)
        return settings(**needed, truncation=TruncationSettings(lengths=tmp_path / name)).identity()

    first = identity("a", "5\n9\n")
    assert first == identity("b", "5\n9\n")
    assert first != identity("a", "5\n8\n")
    assert identity("absent", None)["truncation"]["lengths"] == str(tmp_path / "absent")
