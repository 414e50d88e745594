"""``turinglike history``: exports of messengers, made by hand in the forms that they have."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from agents.language.person import read_message_file
from serving.cli import main
from serving.exchange.histories.command import read_chat
from serving.runs.run import Run

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
    messages = read_message_file(out) if out.exists() else []
    return code, [(line.at.isoformat() if line.at else None, line.speaker, line.text) for line in messages]


def texts(tmp_path: Path, text: str, more: tuple[str, ...] = ("--json",)) -> list[tuple[str, str]]:
    code, rows = made(tmp_path, text, more=more)
    assert code == 0
    return [(speaker, text) for _, speaker, text in rows]


def test_an_export_of_an_android_phone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = made(tmp_path, ANDROID, more=("--json",))
    assert code == 0
    assert rows == [
        ("2023-12-31T21:05:00", "person", "on my way\ntwo lines: one message"),
        ("2023-12-31T21:07:00", "other", "look at this"),
        ("2023-12-31T21:08:00", "person", "time is 21:08 - ok?"),
        ("2024-01-01T00:00:00", "other", "\U0001f389"),
    ]
    printed = json.loads(capsys.readouterr().out)
    assert printed["dropped"] == {"media and notices": 5, "empty or deleted": 1}
    assert (printed["person"]["messages"], printed["person"]["turns"], printed["others"]) == (2, 2, 1)
    assert "0.50 emoji stand in a message" in printed["other"]["style"]
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert made(tmp_path, ANDROID.replace("way", "bike"))[0] == 2  # what is there is not replaced
    assert "on my way" in (tmp_path / "out.jsonl").read_text()


def test_an_export_of_an_ios_phone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path, IOS.replace("\n", "\r\n"), person="Bob") == (
        0,
        [
            ("2023-12-31T21:05:12", "other", "on my way\ntwo lines: one message"),
            ("2023-12-31T00:00:00", "person", "look at this"),
        ],
    )
    assert "left out: 2 media and notices" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "time"),
    [
        ("12/31/23, 9:05 PM - ", "2023-12-31T21:05:00"),
        ("[2023/12/31, 9:05:01 p.m.] ", "2023-12-31T21:05:01"),
        ("31-12-23 21:05:19: ", "2023-12-31T21:05:19"),
        ("31.12.23 г., 21:05 ч. - ", "2023-12-31T21:05:00"),
        ("31.12.2023 klo 21.05 - ", "2023-12-31T21:05:00"),
        ("26/09/2019 à 22:39 - ", "2019-09-26T22:39:00"),
        ("21:05, 31/12/2023 - ", "2023-12-31T21:05:00"),
        ("31/12/2023, 9:05 μ.μ. - ", "2023-12-31T21:05:00"),
        ("31/12/2023, 9:05\u202fCH - ", "2023-12-31T21:05:00"),
        ("31/12/23 a las 9:05 p.\u00a0m. - ", "2023-12-31T21:05:00"),
        ("[2023/12/31 上午12:05:12] ", "2023-12-31T00:05:12"),
        ("2023/12/31 中午12:05 - ", "2023-12-31T12:05:00"),
        ("2023년 12월 31일 오후 9:05, ", "2023-12-31T21:05:00"),
        ("31/12/2566 21:05 - ", "2023-12-31T21:05:00"),
        ("[31/12/2566 BE 9:05:12 หลังเที่ยง] ", "2023-12-31T21:05:12"),
        ("٣١\u200f/١٢\u200f/٢٠٢٣، ٩:٠٥ م - ", "2023-12-31T21:05:00"),
        ("\u200f[31.12.2023, 21:05:12] \u200f", "2023-12-31T21:05:12"),
    ],
)
def test_forms_of_dates(head: str, time: str, tmp_path: Path) -> None:
    assert made(tmp_path, f"{head}Ann: hi") == (0, [(time, "person", "hi")])


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        ("1/2/24 3/2/24", None),  # both orders go forward
        ("1/2/24 13/2/24", ["02-01", "02-13"]),
        ("1/2/24 2/13/24", ["01-02", "02-13"]),
        ("15/12/30 15/12/31 16/01/01", ["12-30", "12-31", "01-01"]),  # a year of two digits may stand first
    ],
)
def test_all_dates_show_whether_days_or_months_stand_first(
    dates: str, days: list[str] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"{date}, 10:00 - Ann: hi\n" for date in dates.split())
    code, rows = made(tmp_path, text)
    assert (code, [str(time)[5:10] for time, _, _ in rows]) == ((2, []) if days is None else (0, days))
    assert ("say which they are with --dates" in capsys.readouterr().err) == (days is None)
    _, rows = made(tmp_path, "1/2/24, 10:00 - Ann: hi\n", more=("--dates", "mdy", "--force"))
    assert rows == [("2024-01-02T10:00:00", "person", "hi")]


def test_stamps_of_another_form_are_a_quotation(tmp_path: Path) -> None:
    text = "31/12/2023, 21:05 - Ann: see\n[31/12/2023, 20:00:01] Bob: a\n2023-12-31 20:00 - Zoe: b\n"
    assert texts(tmp_path, text) == [("person", text.split("Ann: ")[1].strip())]


def test_an_export_of_telegram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = [("person", "hi\nyou"), ("other", "see https://example.org!"), ("other", "gone")]
    assert made(tmp_path, TELEGRAM) == (0, [("2024-01-29T11:41:00", *message) for message in messages])
    assert "left out: 2 forwarded, 2 media and notices, 1 written by a bot" in capsys.readouterr().out


def test_a_history_is_taken_and_chats_stand_one_after_the_other(tmp_path: Path) -> None:
    later = "31/12/2023, 21:05 - Ann: later\n31/12/2023, 21:06 - Zoe: last\n"
    earlier = "30/12/2023, 21:05 - Bob: first\n30/12/2023, 21:06 - Ann: second\n"
    code, rows = made(tmp_path, later, earlier)
    assert (code, [text for _, _, text in rows]) == (0, ["first", "second", "later", "last"])
    again = (tmp_path / "out.jsonl").read_bytes()
    assert made(tmp_path, again, person="person", more=("--force",)) == (0, rows)


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ("31 Dec 2023, 21:05 - Ann: hi\n", ["begins with its date in numbers"]),
        (b"\xff\xfe1/2/24, 10:00 - Ann: hi", ["UTF-8", "archive"]),
        (TELEGRAM[:-9], ["is not JSON, or not complete"]),
        ('{"chats": {"list": []}}', ["export a single chat"]),
        ('{"messages": []}', ["contains no message"]),
        (
            telegram({}, {"text": 7}, {"text": [{"a": 1}]}, {"type": None}, {"date": "never"}),
            [f"message {number}: " for number in range(2, 6)],
        ),
        (
            "x\ny\n31.12.2023, 21:05 - Ann: hi\n31.14.2023, 21:05 - Ann: hi\n31.12.2023, 25:05 - Ann: a\n",
            ["export0:1: stands before", "export0:2: ", "export0:4: has a date", "export0:5: has a date"],
        ),
        ("13/2/24, 9:05 - Ann: a\n2/13/24, 9:05 - Ann: a\n", ["say which they are with --dates"]),
        ("31.12.2023, 21:05 - Ann: hi\n10.10.1402, 21:05 - Ann: hi\n", ["export0:2: ", "no messages of the year 1402"]),
        ("31/12/2023, 13:05 PM - Ann: hi\n", ["no hour 13 pm"]),
        ('{"speaker": "person", "text": ""}\n{"speaker": "x"}\n', ["export0:1: ", "export0:2: "]),
        ("31/12/2023, 21:05 - Bob: hi\n31/12/2023, 21:05 - Zoe: hi\n", ["no message is from Ann", "Bob, Zoe"]),
    ],
)
def test_all_that_cannot_be_read_is_listed_at_once(
    content: str | bytes, sentences: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(tmp_path, content)[0] == 2
    printed = capsys.readouterr().err
    assert [sentence for sentence in sentences if sentence not in printed] == []
    assert not (tmp_path / "out.jsonl").exists()


def test_a_message_of_nothing_but_spaces_is_read(tmp_path: Path) -> None:
    """An expression that backtracks would take longer than a test may."""
    path = tmp_path / "chat.txt"
    path.write_text("31/12/2023, 21:05 - Ann: a" + " " * 100_000 + "\n" * 100_000 + "b <This message was edited>\n")
    [message] = read_chat(path).messages
    assert (message.text[0], message.text[-1]) == ("a", "b")


def test_the_persons_name_may_have_a_colon(tmp_path: Path) -> None:
    export = "31/12/2023, 21:05 - Dr: Jose\u0301\u00a0B: time: now\n31/12/2023, 21:06 - ~\u202fDr: Bob\n"
    code, rows = made(tmp_path, export, person="Dr: Jos\u00e9 B")  # and is compared composed
    assert (code, [row[1:] for row in rows]) == (0, [("person", "time: now"), ("other", "Bob")])


@pytest.mark.parametrize(
    "text",
    [
        "write to <zoe@example.org>",
        "use List<String>",
        "Map <String, Integer>",
        "I use node.js (version 20)",
        "\u200e@Bob are you there",
        "time: now",
    ],
)
def test_what_looks_like_a_marker_and_is_none_stays(text: str, tmp_path: Path) -> None:
    rows = texts(tmp_path, f"31.12.2023, 21:05 - Ann: {text}\n" * 2)
    assert rows == [("person", text.strip("\u200e"))] * 2


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["<Medien ausgeschlossen>\nthesis.pdf"], []),
        (["<Medien ausgeschlossen>\nlook"], ["look"]),
        (["hi <Diese Nachricht wurde bearbeitet.>"], ["hi"]),
        (
            ["\u200elorem ipsum", "look \u200elorem ipsum", "see \u200e@Bob"],
            ["look \u200elorem ipsum", "see \u200e@Bob"],
        ),
        (["\u200e<attached: 00000012-PHOTO-2023-12-31-21-05-12.jpg>"], []),
        (["look \u200e<lorem: 00000012-PHOTO-2023-12-31-21-05-12.jpg>"], ["look"]),
        (["IMG-20231231-WA0001.jpg (lorem ipsum)", "thesis.pdf (Datei angehängt)\nread"], ["read"]),
        (["Diese Nachricht wurde gelöscht.", "Se eliminó este mensaje.", "삭제된 메시지입니다."], []),
    ],
)
def test_the_messengers_words_are_known_or_marked(lines: list[str], left: list[str], tmp_path: Path) -> None:
    export = "".join(f"31.12.2023, 21:05 - Ann: {line}\n" for line in [*lines, "end"])
    assert [text for _, text in texts(tmp_path, export)] == [*left, "end"]


def test_notices_have_no_speaker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = (
        "31.12.2023, 21:05 - Trip: \u200eMessages and calls are end-to-end encrypted.\n"
        "31.12.2023, 21:05 - Ann: hi\n"
        '31.12.2023, 21:06 - Bob created group "Party: 2024"\n'
        '31.12.2023, 21:07 - Ann changed the subject from "Party: 2024" to "Trip: May"\n'
        "31.12.2023, 21:07 - Bob hat den Betreff von „A: b“ zu „C“ geändert\n"
        "31.12.2023, 21:08 - Bob: ok\n"
        "31.12.2023, 21:08 - Ann 'Nan' \"N\" Smith: my name is long\n"
    )
    assert texts(tmp_path, export) == [("person", "hi"), ("other", "ok"), ("other", "my name is long")]
    printed = json.loads(capsys.readouterr().out)
    assert (printed["others"], printed["dropped"]) == (2, {"media and notices": 4})


def test_a_group_is_no_speaker(tmp_path: Path) -> None:
    encrypted = "Trip: Messages and calls are end-to-end encrypted. No one outside of this chat can read them."
    lines = [encrypted, "Bob: Bob created group “Trip”", "Trip: Bob added you", "Ann: hello", "Bob: Trip: at last"]
    export = "".join(f"[14.08.2024, 21:00:1{place}] {line}\n" for place, line in enumerate(lines))
    assert texts(tmp_path, export) == [("person", "hello"), ("other", "Trip: at last")]


def test_chats_become_conversations_that_import_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pause ends a conversation, and what only one of the two wrote is none."""
    later = (
        "31/12/2023, 21:05 - Ann: hi\n31/12/2023, 21:06 - Ann: there?\n31/12/2023, 21:36 - Bob: yes\n"
        "31/12/2023, 22:40 - Bob: alone\n"
        "01/01/2024, 10:00 - Bob: happy new year\n01/01/2024, 10:59 - Ann: and you\n"
    )
    (tmp_path / "later.txt").write_text(later)
    first = {"text": "first", "date": "2023-12-30T09:00:00"}
    (tmp_path / "result.json").write_text(telegram(first, {**first, "from": "Bob", "from_id": "user2"}))
    out = tmp_path / "talks.json"
    command = ["history", str(tmp_path / "later.txt"), str(tmp_path / "result.json"), "--person", "Ann", "-o", str(out)]
    assert main([*command, "--conversations"]) == 0
    assert "3 conversations" in capsys.readouterr().out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    people = tmp_path / "people"
    assert main(["import", str(out), "-o", str(people)]) == 0
    [name] = Run(people).imports()
    records = list(Run(people).latest(name))
    assert [record["agent"] for record in records] == ["human~human"] * 3
    said = [[(line["speaker"], line["text"]) for line in record["answer"]["messages"]] for record in records]
    assert said == [
        [("person", "first"), ("other", "first")],
        [("person", "hi"), ("person", "there?"), ("other", "yes")],
        [("other", "happy new year"), ("person", "and you")],
    ]
    assert records[1]["raw"]["content"][2]["at"] == "2023-12-31T21:36:00"
    assert main([*command, "--conversations", "--pause", "20", "--force"]) == 0
    assert list(json.loads(out.read_text())) == ["talk0001"]  # the two others are cut between the two people


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (telegram({}, {"from": "Bob", "from_id": "user2"}, {"from": "Zoe", "from_id": "user3"}), "3 people write"),
        (telegram({"text": "hello"}, {"text": "is anybody here?"}), "there is no conversation"),
        ('{"speaker": "person", "text": "a"}\n{"speaker": "other", "text": "b"}\n', "no time"),
    ],
)
def test_what_is_no_conversation_of_two_is_refused(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    person = "person" if "speaker" in content else "Ann"
    assert made(tmp_path, content, person=person, more=("--conversations",))[0] == 2
    assert words in capsys.readouterr().err


def test_a_pause_without_conversations_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path, ANDROID, more=("--pause", "5"))[0] == 2
    assert "give --conversations, too" in capsys.readouterr().err


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
