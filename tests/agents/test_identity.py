"""Which settings make two runs the same: those that answers follow from, and files by what is in them."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from agents import catalogue
from agents.contract import LATER, Settings
from agents.language.chat import LocalChatAgent, OpenAIChatAgent
from agents.language.sent_messages import TruncationSettings
from serving.runs.run_json import run_entry


def described(name: str, **chosen: Any) -> str:
    entry = catalogue.get(name)
    return str(run_entry([(entry, entry.make(chosen))])["digest"])


@pytest.mark.parametrize("field", ["concurrency", "timeout_s", "patience_s", "retries", "key_variable"])
def test_patience_is_no_part_of_a_run(field: str) -> None:
    value = "OTHER" if field == "key_variable" else 7
    assert described("openai-chat", model="m") == described("openai-chat", model="m", **{field: value})


@pytest.mark.parametrize("chosen", [{"model": "n"}, {"base_url": "http://127.0.0.1/v1"}, {"seed_bits": 31}])
def test_what_is_asked_is(chosen: dict[str, Any]) -> None:
    assert described("openai-chat", model="m") != described("openai-chat", **{"model": "m", **chosen})


@pytest.mark.parametrize("inside", [LocalChatAgent.Settings, OpenAIChatAgent.Settings])
def test_a_file_counts_by_what_is_in_it(tmp_path: Path, inside: Any) -> None:
    given = {"checkpoint": "c"} if inside is LocalChatAgent.Settings else {"model": "m"}

    def identity(name: str, text: str | None) -> dict[str, Any]:
        if text is not None:
            (tmp_path / name).write_text(text)
        return inside(**given, truncation=TruncationSettings(lengths=tmp_path / name)).identity()

    first = identity("a", "5\n9\n")
    assert first == identity("b", "5\n9\n")
    assert first != identity("a", "5\n8\n")
    assert identity("absent", None)["truncation"]["lengths"] == str(tmp_path / "absent")


def test_a_later_setting_counts_once_it_is_chosen() -> None:
    """Otherwise a new setting would end the resume of every older run."""

    class Before(Settings):
        size: int = 3

    class Since(Before):
        day: str = Field("2024-07-26", json_schema_extra=LATER)
        names: tuple[str, ...] = Field(default_factory=tuple, json_schema_extra=LATER)

    assert Since().identity() == Before().identity() == Since(day="2024-07-26", names=()).identity()
    assert Since(day="2025-01-01", names=("a",)).identity() == {"size": 3, "day": "2025-01-01", "names": ["a"]}
