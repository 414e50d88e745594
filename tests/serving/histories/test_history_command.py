"""``turinglike history``: exports of Telegram, made by hand in the forms that they have."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from agents.language.person import read_history
from serving.cli import main

Rows = list[tuple[str | None, str, str]]


def telegram(*messages: dict[str, Any]) -> str:
    common = {"type": "message", "date": "2024-01-29T11:41:00", "from": "Ann", "from_id": "user1", "text": "hi"}
    return json.dumps({"messages": [common | message for message in messages]}, indent=1)


TELEGRAM = telegram(
    {"type": "service", "actor": "Ann", "action": "phone_call", "text": ""},
    {"text": "hi\nyou"},
    {"from": "Bob", "from_id": "user2", "text": ["see ", {"type": "link", "text": "https://example.org"}, "!"]},
    {"from": "Bob", "from_id": "user2", "photo": "p.jpg", "text": ""},
    {"forwarded_from": "X", "text": "theirs"},
    {"forwarded_from": None, "text": "of a gone account"},
    {"via_bot": "@bot", "text": "its"},
    {"from": None, "from_id": None, "text": "gone"},
)


def made(tmp_path: Path, *contents: str | bytes, person: str = "Ann", more: tuple[str, ...] = ()) -> tuple[int, Rows]:
    """The exit code, and (time, speaker, text) of the history that the command makes of files."""
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"export{number}")
        paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "out.jsonl"
    code = main(["history", *map(str, paths), "--person", person, "-o", str(out), *more])
    messages = read_history(out) if out.exists() else []
    return code, [(line.at.isoformat() if line.at else None, line.speaker, line.text) for line in messages]


def test_an_export_of_telegram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = [("person", "hi\nyou"), ("other", "see https://example.org!"), ("other", "gone")]
    assert made(tmp_path, TELEGRAM) == (0, [("2024-01-29T11:41:00", *message) for message in messages])
    assert "left out: 2 forwarded, 2 media and notices, 1 written by a bot" in capsys.readouterr().out
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert made(tmp_path, TELEGRAM.replace("hi", "hello"))[0] == 2  # what is there is not replaced
    assert "hello" not in (tmp_path / "out.jsonl").read_text()


def test_counts_and_styles_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path, TELEGRAM, more=("--json",))[0] == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["dropped"] == {"forwarded": 2, "media and notices": 2, "written by a bot": 1}
    assert (printed["person"]["messages"], printed["other"]["messages"], printed["others"]) == (1, 2, 2)


def test_names_are_compared_composed(tmp_path: Path) -> None:
    export = telegram({"from": "Jose\u0301\u00a0B"}, {"from": "Bob", "from_id": "user2", "text": "and I"})
    code, rows = made(tmp_path, export, person="Jos\u00e9 B")
    assert (code, [row[1:] for row in rows]) == (0, [("person", "hi"), ("other", "and I")])


def test_a_history_is_taken_and_chats_stand_one_after_the_other(tmp_path: Path) -> None:
    bob = {"from": "Bob", "from_id": "user2"}
    later = telegram({"text": "later"}, {"text": "last", **bob})
    earlier = telegram(
        *({"date": "2024-01-28T11:41:00", "text": text, **who} for text, who in (("first", bob), ("second", {})))
    )
    code, rows = made(tmp_path, later, earlier)
    assert (code, [text for _, _, text in rows]) == (0, ["first", "second", "later", "last"])
    again = (tmp_path / "out.jsonl").read_bytes()
    assert made(tmp_path, again, person="person", more=("--force",)) == (0, rows)


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ("31/12/2023, 21:05 - Ann: hi\n", ["neither Telegram's result.json of a chat nor a history"]),
        (b"\xff\xfe{}", ["neither Telegram's result.json"]),
        (TELEGRAM[:-9], ["is no JSON, or not all of it"]),
        ('{"chats": {"list": []}}', ["one chat alone"]),
        ('{"messages": []}', ["holds no message"]),
        (
            telegram({}, {"text": 7}, {"text": [{"a": 1}]}, {"type": None}, {"date": "never"}),
            [f"message {number}: " for number in range(2, 6)],
        ),
        ('{"speaker": "person", "text": ""}\n{"speaker": "x"}\n', ["export0:1: ", "export0:2: "]),
        (telegram({"from": "Bob"}, {"from": "Zoe"}), ["no message is from Ann", "Bob, Zoe"]),
    ],
)
def test_all_that_cannot_be_read_is_listed_at_once(
    content: str | bytes, sentences: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(tmp_path, content)[0] == 2
    printed = capsys.readouterr().err
    assert [sentence for sentence in sentences if sentence not in printed] == []
    assert not (tmp_path / "out.jsonl").exists()


def test_two_people_of_one_name_are_told_apart_by_their_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = telegram({}, {"from_id": "user2", "text": "me too"}, {"from": "Bob", "from_id": "user3", "text": "x"})
    assert made(tmp_path, export)[0] == 2
    assert "user1 (messages: 1) or user2 (messages: 1)" in capsys.readouterr().err
    _, rows = made(tmp_path, export, person="user2")
    assert [row[1:] for row in rows] == [("other", "hi"), ("person", "me too"), ("other", "x")]
    old = telegram({"from_id": 1}, {"from_id": 2})  # as Telegram wrote them once
    assert made(tmp_path, old, more=("--force",))[0] == 2
    assert [row[1] for row in made(tmp_path, old, person="2", more=("--force",))[1]] == ["other", "person"]
    # In two exports, too; and a name that is of one account alone is enough.
    assert made(tmp_path, telegram({}), telegram({"from_id": "user2"}), more=("--force",))[0] == 2
    assert made(tmp_path, export, person="Bob", more=("--force",))[0] == 0
