"""Excerpts of conversations: every page and text read back by other means, and that nothing tells whose they are."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_folders import agent_entry, failed, record, stimulus, write_run

from agents.errors import InputError
from serving.cli import main
from serving.export.excerpts import as_page, as_text
from serving.export.registry import export

TALK = "conversation"
AGENTS = ("eliza", "qwen", "dialogpt", "catch")
PEOPLE = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None, "stimulus_sha256": None}
NASTY = [
    "</p><script>alert(1)</script><p>",
    "\"quoted\" & 'quoted' &amp; <b>not bold</b> <!-- no comment -->",
    "{{ config }} {% raw %} {# gone #} ${x}",
    "first line\nB: I am the other one\r\n  third, indented",
    "שלום! مرحبا 👩🏽\u200d🚀 \u202eback to front",
    "",
    "]]></style><img src=http://evil.example/x.png onerror=alert(1)>",
    f"{'very ' * 5_000}long",
]
VOID = {"meta"}


class Page(HTMLParser):
    """A page as a browser reads it: its elements, and (class, text) of its paragraphs; everything must be closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[list[str]] = []
        self.elsewhere: dict[str, str] = {}
        self._open: list[str] = []
        self.types: list[str] = []
        self.feed(data.decode("utf-8"))
        self.close()
        assert self._open == []

    def handle_decl(self, decl: str) -> None:
        self.types.append(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "p":
            self.said.append([dict(attrs)["class"] or "", ""])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "p" in self._open:
            self.said[-1][1] += data
        elif data.strip():
            self.elsewhere[self._open[-1]] = self.elsewhere.get(self._open[-1], "") + data


def read_page(data: bytes) -> list[tuple[str, str]]:
    """(letter, text) of each message, by its colour; the label must be the letter's."""
    page = Page(data)
    colours = dict(re.findall(r"\.([AB])\{color:(\w+)\}", page.elsewhere["style"]))
    assert colours == {"A": "darkblue", "B": "crimson"}
    letters = {"darkblue": "A", "crimson": "B"}
    found = []
    for name, text in page.said:
        letter = letters[colours[name]]
        assert text.startswith(f"{letter}: ")
        found.append((letter, text[3:]))
    return found


def read_text(data: bytes) -> list[tuple[str, str]]:
    """(letter, text) of each message: a line that is not indented begins one."""
    found: list[list[str]] = []
    for row in data.decode("utf-8").removesuffix("\n").split("\n"):
        if row.startswith("   "):
            found[-1][1] += f"\n{row[3:]}"
        else:
            letter, rest = row[0], row[1:]
            assert rest.startswith(": ")
            found.append([letter, rest[2:]])
    return [(letter, text) for letter, text in found]


def message(turn: int, speaker: str, agent: str, text: str, finish: str | None = "stop") -> dict[str, Any]:
    row = {"turn": turn, "speaker": speaker, "agent": agent, "text": text, "raw": None, "at": None}
    return {**row, "finish": finish, "delay_s": None}


def talk(
    name: str, agents: tuple[str, str], texts: list[str], speakers: tuple[str, str] = ("Ann", "Bob"), **changes: Any
) -> dict[str, Any]:
    """A record of a conversation in which the first of ``agents`` speaks first."""
    messages = [message(k, speakers[k % 2], agents[k % 2], text) for k, text in enumerate(texts)]
    raw = {"topic": f"topic of {name}", "names": list(speakers), "personas": ["p", "q"], "who_starts": "A"}
    said = {"answer": {"messages": messages, "ended_early": False}, "raw": raw, "agent": "~".join(agents)}
    return record(name, TALK, **{**said, **changes})


def texts(count: int, about: str = "") -> list[str]:
    return [f"{about} message {k}" for k in range(count)]


def read_key(out: Path) -> list[dict[str, str]]:
    with out.with_name(f"{out.name}.key.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(tmp_path: Path, records: dict[str, list[dict[str, Any]]], stimuli: list[dict[str, Any]], **meta: Any) -> Path:
    agents = {name: agent_entry(TALK) for name in records if name not in ("humans", "published")}
    for name in agents:
        if name.startswith("catch"):
            agents[name]["kind"] = "control"
    return write_run(tmp_path / "run", stimuli, records, agents, **meta)


def mixed(tmp_path: Path, **meta: Any) -> Path:
    """Two pairs, people, a failed and a rejected conversation, catch trials; 24, 48, 24, 7 and 2 messages."""
    records = {
        "eliza~qwen": [
            talk("s/one", ("eliza", "qwen"), texts(24, "one")),
            talk("s/two", ("qwen", "eliza"), texts(48, "two"), agent="eliza~qwen", sample=1),
            failed("s/three", task=TALK, agent="eliza~qwen"),
        ],
        "dialogpt~dialogpt": [
            talk("s/one", ("dialogpt", "dialogpt"), texts(24, "other")),
            talk("s/two", ("dialogpt", "dialogpt"), texts(5), status="rejected"),
            talk("s/three", ("dialogpt", "dialogpt"), texts(2)),
        ],
        "catch~catch": [talk("s/one", ("catch", "catch"), texts(24), kind="control")],
        "humans": [
            talk("b-1", ("human:05", "human:06"), texts(7, "people"), agent="human:05", **PEOPLE),
            record("other", agent="human:05", **PEOPLE),
        ],
    }
    stimuli = [
        stimulus("s/one", TALK, topic="books", benchmark_id="b-1"),
        stimulus("s/two", TALK, exchanges=48),
        stimulus("s/three", TALK),
    ]
    return run(tmp_path, records, stimuli, **meta)


SAID = {
    ("eliza~qwen", "s/one", "0"): ("eliza", "qwen", texts(24, "one")),
    ("eliza~qwen", "s/two", "1"): ("qwen", "eliza", texts(48, "two")),
    ("dialogpt~dialogpt", "s/one", "0"): ("dialogpt", "dialogpt", texts(24, "other")),
    ("dialogpt~dialogpt", "s/three", "0"): ("dialogpt", "dialogpt", texts(2)),
    ("human:05", "b-1", "0"): ("human:05", "human:06", texts(7, "people")),
}


@pytest.mark.parametrize(("step", "longest"), [(3, 24), (4, 48), (1, 3), (7, 7)])
def test_every_excerpt_is_what_the_key_says(tmp_path: Path, step: int, longest: int) -> None:
    out = tmp_path / "new" / "judged"
    export(mixed(tmp_path), "conversations", out, step=step, longest=longest)
    key = read_key(out)
    expected = {
        (name, length)
        for name, (_, _, said) in SAID.items()
        for length in range(step, min(longest, len(said)) + 1, step)
    }
    assert {((row["agent"], row["stimulus"], row["sample"]), int(row["exchanges"])) for row in key} == expected
    assert len(key) == len(expected)
    files = {f"{row['file']}{ending}" for row in key for ending in (".html", ".txt")}
    assert {path.name for path in out.iterdir()} == files
    for row in key:
        a, b, said = SAID[row["agent"], row["stimulus"], row["sample"]]
        assert row["file"] == f"conv{row['conversation']}_len{row['exchanges']}"
        assert (row["a"], row["b"], row["a_name"], row["b_name"]) == (a, b, "Ann", "Bob")
        assert (row["kind"], row["given"]) == ("human" if a.startswith("human") else "machine", "0")
        assert (row["topic"], row["whole"]) == (f"topic of {row['stimulus']}", str(len(said)))
        assert row["benchmark_id"] == ("b-1" if row["stimulus"] in ("s/one", "b-1") else "")
        excerpt = [("AB"[k % 2], text) for k, text in enumerate(said[: int(row["exchanges"])])]
        for ending, read in (("html", read_page), ("txt", read_text)):
            data = (out / f"{row['file']}.{ending}").read_bytes()
            assert read(data) == excerpt
            assert hashlib.sha256(data).hexdigest() == row[f"sha256_{ending}"]


def test_the_papers_lengths_and_what_is_left_out_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "judged"
    assert main(["export", str(mixed(tmp_path)), "--format", "conversations", "--out", str(out)]) == 0
    assert {int(row["exchanges"]) for row in read_key(out)} == {3, 6, 9, 12, 15, 18, 21, 24}
    about = json.loads((tmp_path / "judged.export.json").read_text())
    assert about["conversations"] == {
        "count": 4, "step": 3, "longest": 24,
        "lengths": {"3": 4, "6": 4, **{str(length): 3 for length in range(9, 25, 3)}},
    }  # fmt: skip
    assert about["left_out"] == {"failed": 1, "rejected": 1, "with too few messages for an excerpt of 3": 1}
    assert about["records"] == {"eliza~qwen": 2, "dialogpt~dialogpt": 1, "human:05": 1}
    told = capsys.readouterr().out
    assert "1 failed left out; 1 rejected left out (--include-rejected)" in told
    assert "4 conversations; excerpts by their number of exchanges: 3: 4, 6: 4, 9: 3" in told
    assert "judged.key.csv; keep it and" in told


def test_nothing_tells_whose_a_conversation_is(tmp_path: Path) -> None:
    out = tmp_path / "judged"
    export(mixed(tmp_path), "conversations", out)
    order = []
    for path in sorted(out.iterdir()):
        told = path.read_bytes().decode().lower()
        for word in (*AGENTS, "human", "machine", "agent", "model", "ann", "bob", "s/", "b-1", "topic", "turinglike"):
            assert word not in told
    assert len({path.stat().st_mtime_ns for path in out.iterdir()}) == 1
    assert len({path.stat().st_mode for path in out.iterdir()}) == 1
    for row in read_key(out):
        entry = int(row["conversation"]), row["agent"], row["stimulus"], int(row["sample"])
        if entry not in order:
            order.append(entry)

    def place(entry: tuple[int, str, str, int]) -> bytes:
        return hashlib.sha256(json.dumps([3, *entry[1:]], separators=(",", ":")).encode()).digest()

    assert [entry[0] for entry in order] == [1, 2, 3, 4]
    assert order == sorted(order, key=place)


def test_a_is_who_speaks_first_whatever_the_pair(tmp_path: Path) -> None:
    """A conversation that begins in the stimulus begins there for judges, too; what is given has no excerpt of its
    own, and an opener is given."""
    history = [{"speaker": "Bob", "text": "given 0"}, {"speaker": "Ann", "text": "given 1"}]
    opened = talk("opened", ("x", "y"), ["Hello there", *texts(3)])
    opened["answer"]["messages"][0]["finish"] = "opener"
    records = {
        "x~y": [
            talk("continued", ("y", "x"), texts(5), ("Bob", "Ann"), agent="x~y"),
            opened,
            talk("all given", ("x", "y"), texts(1)),
        ]
    }
    stimuli = [
        stimulus("continued", TALK, history=history),
        stimulus("opened", TALK, opener="Hello there"),
        stimulus("all given", TALK, history=[*history, *history]),
    ]
    out = tmp_path / "judged"
    export(run(tmp_path, records, stimuli), "conversations", out, step=1, longest=24)
    rows = {(row["stimulus"], int(row["exchanges"])): row for row in read_key(out)}
    assert set(rows) == {
        *(("continued", k) for k in range(3, 8)), *(("opened", k) for k in range(2, 5)), ("all given", 5),
    }  # fmt: skip
    whole = rows["continued", 7]
    assert read_text((out / f"{whole['file']}.txt").read_bytes()) == [
        ("A", "given 0"), ("B", "given 1"), *(("AB"[k % 2], text) for k, text in enumerate(texts(5))),
    ]  # fmt: skip
    assert (whole["a"], whole["b"], whole["a_name"], whole["b_name"]) == ("y", "x", "Bob", "Ann")
    assert (whole["given"], whole["whole"]) == ("2", "7")
    assert rows["opened", 2]["given"] == "1"
    assert (rows["all given", 5]["a"], rows["all given", 5]["b"]) == ("", "x")


def test_a_history_that_names_the_sides_has_the_same_two_speakers(tmp_path: Path) -> None:
    """The names were drawn, and stand in the record alone; a stranger in the history is a third speaker."""
    history = [{"speaker": "B", "text": "given 0"}, {"speaker": "A", "text": "given 1"}]
    stimuli = [stimulus("letters", TALK, history=history), stimulus("own", TALK, names=["B", "A"], history=history)]
    rows = [talk("letters", ("x", "y"), texts(4), ("Ann", "Bob")), talk("own", ("x", "y"), texts(4), ("B", "A"))]
    rows[0]["raw"]["names"] = ["Bob", "Ann"]
    export(run(tmp_path, {"x~y": rows}, stimuli), "conversations", tmp_path / "judged", step=6, longest=6)
    found = {
        row["stimulus"]: (row["a_name"], row["b_name"], row["a"], row["b"]) for row in read_key(tmp_path / "judged")
    }
    assert found == {"letters": ("Ann", "Bob", "x", "y"), "own": ("B", "A", "x", "y")}


def test_more_than_two_speakers_are_left_out(tmp_path: Path) -> None:
    rows = [talk("two", ("a", "b"), texts(6)), talk("three", ("a", "b"), texts(6))]
    rows[1]["answer"]["messages"][4]["speaker"] = "Eve"
    run_folder = run(tmp_path, {"a~b": rows}, [stimulus("two", TALK), stimulus("three", TALK)])
    export(run_folder, "conversations", tmp_path / "judged")
    assert {row["stimulus"] for row in read_key(tmp_path / "judged")} == {"two"}
    about = json.loads((tmp_path / "judged.export.json").read_text())
    assert about["left_out"] == {"with more than two speakers": 1}


def test_people_without_a_set_are_exported_the_same_way(tmp_path: Path) -> None:
    rows = [talk("any", ("human:01", "human:02"), texts(6), agent="human:01", raw=None, **PEOPLE)]
    folder = run(tmp_path, {"humans": rows}, [], set={})
    (folder / "stimuli.jsonl").unlink()
    export(folder, "conversations", tmp_path / "judged")
    assert [(row["kind"], row["topic"], row["a"]) for row in read_key(tmp_path / "judged")] == [
        ("human", "", "human:01")
    ] * 2


def test_text_stays_text_on_a_page(tmp_path: Path) -> None:
    out = tmp_path / "judged"
    folder = run(tmp_path, {"a~b": [talk("s", ("a", "b"), NASTY)]}, [stimulus("s", TALK)])
    export(folder, "conversations", out, step=8, longest=8)
    data = (out / "conv1_len8.html").read_bytes()
    # A parser of HTML reads every end of a line as \n.
    expected = [("AB"[k % 2], text.replace("\r\n", "\n")) for k, text in enumerate(NASTY)]
    assert [(letter, text.replace("\r\n", "\n")) for letter, text in read_page(data)] == expected
    assert read_text((out / "conv1_len8.txt").read_bytes()) == expected
    page = Page(data)
    assert page.types == ["DOCTYPE html"]
    assert [tag for tag, _ in page.elements if tag not in ("p", "bdi")] == [
        "html", "head", "meta", "meta", "meta", "title", "style", "script", "body",
    ]  # fmt: skip
    assert ("meta", {"charset": "utf-8"}) in page.elements
    assert {name for tag, attributes in page.elements for name in attributes if tag in ("p", "bdi", "script")} == {
        "class"
    }
    # A page is a template in the papers' experiment: nothing in it may begin an expression.
    assert not re.search(rb"\{[{%#]", data)


def test_only_the_pages_own_script_and_style_may_work_and_nothing_is_requested() -> None:
    import base64

    page = Page(as_page([("A", "hi")]).encode())
    [policy] = [attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    for name, text in (("style-src", page.elsewhere["style"]), ("script-src", page.elsewhere["script"])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(name) == f"'sha256-{digest}'"
    assert rules == {}
    assert not {"src", "href", "action"} & {name for _, attributes in page.elements for name in attributes}
    assert "url(" not in page.elsewhere["style"]


# What a page cannot hold (control characters) is replaced; everything else comes back.
ANY = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=60)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("AB"), ANY), max_size=5))
def test_any_text_comes_back(messages: list[tuple[str, str]]) -> None:
    assert read_page(as_page(messages).encode()) == messages
    if messages:
        plain = [(letter, re.sub("[\u2028\u2029]", "\n", text).removesuffix("\n")) for letter, text in messages]
        assert read_text(as_text(messages).encode()) == plain


@pytest.mark.parametrize("wrong", [{"step": 0}, {"step": -3}, {"step": 25}, {"longest": 0}])
def test_wrong_lengths(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"--(step|longest) |longer than the longest"):
        export(mixed(tmp_path), "conversations", tmp_path / "judged", **wrong)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ({}, "there are no conversations to export$"),
        ({"a~b": []}, "there are no conversations to export$"),
        (
            {"a~b": [failed("s", task=TALK, agent="a~b"), talk("t", ("a", "b"), texts(2))]},
            "no conversations to export; 1 failed left out; 1 with too few messages for an excerpt of 3 left out",
        ),
        (
            {"catch~catch": [talk("s", ("catch", "catch"), texts(9), kind="control")]},
            "there are no conversations to export$",
        ),
    ],
)
def test_nothing_to_export_is_said(tmp_path: Path, records: dict[str, list[dict[str, Any]]], said: str) -> None:
    folder = run(tmp_path, records, [stimulus("s", TALK), stimulus("t", TALK)])
    with pytest.raises(InputError, match=said):
        export(folder, "conversations", tmp_path / "judged")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("answer", [{"messages": [{"text": "hi"}]}, {"messages": 5}, {"word": "hi"}])
def test_what_is_no_conversation_is_named(tmp_path: Path, answer: dict[str, Any]) -> None:
    folder = run(tmp_path, {"a~b": [talk("s", ("a", "b"), [], answer=answer)]}, [stimulus("s", TALK)])
    with pytest.raises(InputError, match="a~b, stimulus 's': answer: not a conversation"):
        export(folder, "conversations", tmp_path / "judged")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
