"""``turinglike history``: exports of messengers, made by hand in the forms that they have."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from agents.language.history import read_history
from serving.cli import main
from serving.histories.command import read_chat

ANDROID = """\
31/12/2023, 21:05 - Messages and calls are end-to-end encrypted. No one outside of this chat can read them.
31/12/2023, 21:05 - Ann: on my way
two lines: one message

31/12/2023, 21:06 - Bob Jr.: <Media omitted>
31/12/2023, 21:07 - Bob Jr.: IMG-20231231-WA0002.jpg (file attached)
31/12/2023, 21:07 - Bob Jr.: IMG-20231231-WA0003.jpg (file attached)
look at this
31/12/2023, 21:08 - Ann: time is 21:08 - ok? <This message was edited>
31/12/2023, 21:09 - Bob Jr.: This message was deleted
31/12/2023, 21:10 - You changed the group name
01/01/2024, 00:00 - Bob Jr.: \U0001f389
"""
IOS = """\
\u200e[31/12/2023, 9:05:01\u202fPM] Bob & Ann: \u200eMessages and calls are end-to-end encrypted.
[31/12/2023, 9:05:12\u202fPM] Ann: on my way
two lines: one message
\u200e[31/12/2023, 9:06:02\u202fPM] ~\u202fBob: \u200eimage omitted
[31/12/2023, 12:00:00\u202fAM] ~\u202fBob: look at this
"""
TELEGRAM = {
    "name": "Bob",
    "type": "personal_chat",
    "id": 1,
    "messages": [
        {"id": 1, "type": "service", "date": "2024-01-29T11:41:00", "actor": "Ann", "action": "phone_call", "text": ""},
        {"id": 2, "type": "message", "date": "2024-01-29T11:41:46", "from": "Ann", "text": "hi\nyou"},
        {"id": 3, "type": "message", "date": "2024-01-29T11:42:00", "from": "Bob", "from_id": "user2",
         "text": ["see ", {"type": "link", "text": "https://example.org"}, "!"],
         "text_entities": [{"type": "plain", "text": "see "}]},
        {"id": 4, "type": "message", "date": "2024-01-29T11:43:00", "from": "Bob", "photo": "p.jpg", "text": ""},
        {"id": 5, "type": "message", "date": "2024-01-29T11:44:00", "from": "Ann", "forwarded_from": "X", "text": "a"},
        {"id": 6, "type": "message", "date": "2024-01-29T11:45:00", "from": None, "text": "gone"},
    ],
}  # fmt: skip
Rows = list[tuple[str | None, str, str]]


def made(tmp_path: Path, *contents: str | bytes, person: str = "Ann", more: tuple[str, ...] = ()) -> tuple[int, Rows]:
    """The exit code, and (time, speaker, text) of the history that the command makes of files."""
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"export{number}")
        paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "out.jsonl"
    code = main(["history", *map(str, paths), "--person", person, "-o", str(out), *more])
    if not out.exists():
        return code, []
    messages = read_history(out)
    return code, [(one.at.isoformat() if one.at else None, one.speaker, one.text) for one in messages]


def test_an_export_of_an_android_phone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = made(tmp_path, ANDROID, more=("--json",))
    assert code == 0
    assert rows == [
        ("2023-12-31T21:05:00", "person", "on my way\ntwo lines: one message"),
        ("2023-12-31T21:07:00", "other", "look at this"),
        ("2023-12-31T21:08:00", "person", "time is 21:08 - ok?"),
        ("2024-01-01T00:00:00", "other", "\U0001f389"),
    ]
    told = json.loads(capsys.readouterr().out)
    assert told["dropped"] == {"media and notices": 5, "empty or deleted": 1}
    assert (told["person"]["messages"], told["other"]["emoji"], told["others"]) == (2, 0.5, 1)
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600


def test_an_export_of_an_ios_phone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = made(tmp_path, IOS.replace("\n", "\r\n"), person="Bob")
    assert code == 0
    assert rows == [
        ("2023-12-31T21:05:12", "other", "on my way\ntwo lines: one message"),
        ("2023-12-31T00:00:00", "person", "look at this"),
    ]
    assert "left out: 2 media and notices" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "time"),
    [
        ("12/31/23, 9:05 PM - ", "2023-12-31T21:05:00"),
        ("12/31/23, 12:05 am - ", "2023-12-31T00:05:00"),
        ("31.12.23, 21:05 - ", "2023-12-31T21:05:00"),
        ("[01.02.24, 21:05:09] ", "2024-02-01T21:05:09"),
        ("2023-12-31, 21:05 - ", "2023-12-31T21:05:00"),
        ("[2023/12/31, 9:05:01 p.m.] ", "2023-12-31T21:05:01"),
        ("31-12-23 21:05:19: ", "2023-12-31T21:05:19"),
        ("31/12/2023 21.05 - ", "2023-12-31T21:05:00"),
    ],
)
def test_forms_of_dates(head: str, time: str, tmp_path: Path) -> None:
    assert made(tmp_path, f"{head}Ann: hi") == (0, [(time, "person", "hi")])


@pytest.mark.parametrize(
    ("dates", "months"),
    [
        ("1/2/24 3/2/24", None),  # both orders go forward
        ("1/2/24 13/2/24", [2, 2]),
        ("1/2/24 2/13/24", [1, 2]),
        ("9/2/24 1/3/24", [2, 3]),  # by months first it would go back
        ("2/9/24 3/1/24", [2, 3]),
        ("13/2/24 2/13/24", None),
    ],
)
def test_whether_days_or_months_stand_first_is_found_from_all_dates(
    dates: str, months: list[int] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"{date}, 10:00 - Ann: hi\n" for date in dates.split())
    code, rows = made(tmp_path, text)
    assert code == (2 if months is None else 0)
    if months is None:
        assert "say which they are with --dates" in capsys.readouterr().err
    else:
        assert [int(str(time)[5:7]) for time, _, _ in rows] == months
    code, rows = made(tmp_path, "1/2/24, 10:00 - Ann: hi\n", more=("--dates", "mdy", "--force"))
    assert rows == [("2024-01-02T10:00:00", "person", "hi")]


def test_an_export_of_telegram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = made(tmp_path, json.dumps(TELEGRAM, indent=1))
    assert code == 0
    assert rows == [
        ("2024-01-29T11:41:46", "person", "hi\nyou"),
        ("2024-01-29T11:42:00", "other", "see https://example.org!"),
        ("2024-01-29T11:45:00", "other", "gone"),
    ]
    assert "left out: 1 forwarded, 2 media and notices" in capsys.readouterr().out


def test_a_history_is_taken_and_chats_stand_one_after_the_other(tmp_path: Path) -> None:
    later = "31/12/2023, 21:05 - Ann: later\n31/12/2023, 21:06 - Zoe: last\n"
    earlier = "30/12/2023, 21:05 - Bob: first\n30/12/2023, 21:06 - Ann: second\n"
    code, rows = made(tmp_path, later, earlier)
    assert code == 0
    assert [text for _, _, text in rows] == ["first", "second", "later", "last"]
    again = (tmp_path / "out.jsonl").read_bytes()
    assert made(tmp_path, again, person="person", more=("--force",)) == (0, rows)
    assert made(tmp_path, again, person="other", more=("--force",))[1][0][1] == "person"


def test_what_is_there_is_not_replaced(tmp_path: Path) -> None:
    assert made(tmp_path, ANDROID)[0] == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    assert made(tmp_path, ANDROID.replace("way", "bike"))[0] == 2
    assert (tmp_path / "out.jsonl").read_bytes() == before


def _bad_telegram() -> dict[str, Any]:
    bad: list[Any] = [7, {"type": "message", "text": 7}, {"type": "message", "text": [{"a": 1}]}, {"text": "x"},
                      {"type": "message", "date": "never", "text": "x"}]  # fmt: skip
    return {**TELEGRAM, "messages": [*TELEGRAM["messages"], *bad]}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", ["neither WhatsApp's"]),
        ("just\nsome text\n", ["neither WhatsApp's"]),
        (b"\xff\xfe1/2/24, 10:00 - Ann: hi", ["UTF-8"]),
        (b"PK\x03\x04zip", ["is an archive"]),
        (json.dumps(TELEGRAM, indent=1)[:-9], ["is no JSON, or not all of it"]),
        ('{"a": 1}', ['no list of "messages"']),
        ('{"messages": {}}', ['no list of "messages"']),
        ('{"chats": {"list": []}}', ["one chat alone"]),
        ('{"messages": []}', ["holds no message"]),
        (json.dumps(_bad_telegram()), [f"message {number}: " for number in range(7, 12)]),
        ("x\ny\n31/12/2023, 21:05 - Ann: hi\n31/14/2023, 21:05 - Ann: hi\n31/12/2023, 25:05 - Ann: a\n",
         ["day/month"]),
        ("x\ny\n31.12.2023, 21:05 - Ann: hi\n31.14.2023, 21:05 - Ann: hi\n31.12.2023, 25:05 - Ann: a\n",
         ["export0:1: ", "export0:2: ", "export0:4: ", "export0:5: "]),
        ('{"speaker": "person", "text": ""}\n{"speaker": "x"}\n', ["export0:1: ", "export0:2: "]),
        ("31/12/2023, 21:05 - Bob: hi\n31/12/2023, 21:05 - Zoe: hi\n", ["no message is from Ann", "Bob, Zoe"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_all_at_once(
    content: str | bytes, told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(tmp_path, content)[0] == 2
    said = capsys.readouterr().err
    assert [one for one in told if one not in said] == []
    assert not (tmp_path / "out.jsonl").exists()


def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("serving.histories.command.MOST_BYTES", 2**20)
    assert made(tmp_path, b" " * (2**20 + 1))[0] == 2
    assert "more than 1 MiB" in capsys.readouterr().err


def test_a_message_of_nothing_but_spaces_is_read_in_no_time(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("31/12/2023, 21:05 - Ann: a" + " " * 30_000 + "\n" * 30_000 + "b <edited>\n")
    began = time.process_time()
    [said] = read_chat(path).messages
    assert time.process_time() - began < 2
    assert (said.text[0], said.text[-1]) == ("a", "b")


def test_the_persons_name_may_have_a_colon(tmp_path: Path) -> None:
    export = "31/12/2023, 21:05 - Dr: Ann: time: now\n31/12/2023, 21:06 - ~\u202fDr: Bob\n"
    code, rows = made(tmp_path, export, person="Dr: Ann")
    assert code == 0
    assert [row[1:] for row in rows] == [("person", "time: now"), ("other", "Bob")]
