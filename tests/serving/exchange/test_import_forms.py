"""Conversations and people's scanpaths in the forms of others become records, and ours come back from their export."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.errors import InputError
from serving.cli import main
from serving.exchange.importing.command import import_files
from tests.helpers.run_folders import read_back

GAZE = "attention_prediction"
TALK = "conversation"


def write(path: Path, content: Any) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else orjson.dumps(content))
    return path


def texts(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    assert [one["turn"] for one in row["answer"]["messages"]] == list(range(len(row["answer"]["messages"])))
    return [(one["speaker"], one["agent"], one["text"]) for one in row["answer"]["messages"]]


def test_topical_chat(tmp_path: Path) -> None:
    said = [
        {"message": f"Number {turn}.", "agent": f"agent_{1 + turn % 2}", "sentiment": "Happy", "turn_rating": "Good"}
        for turn in range(4)
    ]
    talk = {"article_url": "https://example.org", "config": "C", "content": said, "conversation_rating": {}}
    shorter = {**talk, "content": said[:3]}
    out = tmp_path / "out"
    import_files([write(tmp_path / "valid_freq.json", {"t_1": talk, "t_2": shorter})], out)
    one, other = read_back(out, "humans")
    assert (one["task"], one["stimulus"], other["stimulus"], one["agent"]) == (TALK, "t_1", "t_2", "human~human")
    assert texts(one)[:2] == [("agent_1", "human", "Number 0."), ("agent_2", "human", "Number 1.")]
    assert one["raw"] == talk
    assert json.loads((out / "import.json").read_bytes())["sources"][0]["form"] == "topical-chat"


PEOPLE = [
    {
        "name": "000000400966.jpg",
        "subject": 2,
        "task": "microwave",
        "condition": "present",
        "bbox": [67, 114, 78, 42],
        "X": [848.6, 799.2],
        "Y": [517.2, 476.2],
        "T": [73, 193],
        "length": 2,
        "correct": 1,
        "RT": 1159,
        "split": "train",
        "fixOnTarget": True,
    },
    {
        "name": "000000400966.jpg",
        "subject": 10,
        "task": "none",
        "condition": "freeview",
        "X": [840, -3.5],
        "Y": [525, 20],
        "T": [200, 100],
        "length": 2,
    },
]


PAGE = """<script>window.parent.postMessage({}, "*");</script>
<font size="3">
<FONT COLOR=darkblue><p style="margin-top:-10px;"> A: Hi , I read &amp; swim. You ? </p>
</FONT><FONT COLOR=crimson><p> B: <3 books: all of them
and more </p>
</FONT><p> A: ... </p><p> </p><p>The end</p></font>"""


def test_a_page_of_the_published_test(tmp_path: Path) -> None:
    page = write(tmp_path / "conv12.html", PAGE.encode())
    out = tmp_path / "out"
    with pytest.raises(InputError) as refused:
        import_files([page], out)
    assert "does not say who its speakers are; give them with --name A~B" in str(refused.value.problems)
    assert main(["import", str(page), "--name", "human~blenderbot", "--out", str(out)]) == 0
    [row] = read_back(out, "published")
    assert (row["stimulus"], row["agent"], row["kind"]) == ("conv12", "published:human~blenderbot", "published")
    assert texts(row) == [
        ("A", "human", "Hi , I read & swim. You ?"),
        ("B", "blenderbot", "<3 books: all of them\nand more"),
        ("A", "human", "..."),
    ]
    assert json.loads((out / "import.json").read_bytes())["sources"][0]["noticed"] == {
        "paragraphs_without_a_speaker": 1
    }
    copy = write(tmp_path / "conv13.html", PAGE.encode())
    import_files([page, copy], out, name="human~human")
    assert [row["agent"] for row in read_back(out, "humans")] == ["human~human"]  # a file's content counts once


def test_people_of_coco_search18(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "fixations.json", PEOPLE)
    out = tmp_path / "out"
    with pytest.raises(InputError) as refused:
        import_files([file], out)
    assert "give --frame WIDTHxHEIGHT" in str(refused.value.problems)
    assert main(["import", str(file), "--frame", "1680x1050", "--out", str(out)]) == 0
    search, free = read_back(out, "humans")
    assert (search["stimulus"], search["agent"]) == ("microwave/000000400966.jpg", "human:02")
    assert (free["stimulus"], free["agent"]) == ("000000400966.jpg", "human:10")
    answer = search["answer"]
    assert (answer["fixations"], answer["frame"]) == ([[848.6, 517.2], [799.2, 476.2]], [1680, 1050])
    assert (answer["durations_ms"], answer["found"], free["answer"]["found"]) == ([73, 193], True, None)
    assert search["raw"] == PEOPLE[0]
    assert "noticed: fixations outside their frame: 1" in capsys.readouterr().out
    import_files([file], tmp_path / "smaller", frame=(800, 500))
    assert "noticed: fixations outside their frame: 3" in capsys.readouterr().out
    import_files([file], out, name="scanner", frame=(1680, 1050))
    assert [row["agent"] for row in read_back(out, "published")] == ["published:scanner"] * 2


@pytest.mark.parametrize(
    ("name", "content", "more", "message"),
    [
        ("talk.json", {"t": {"content": [{"agent": 1, "message": "x"}]}}, {}, "must be text"),
        ("talk.json", {"t": {"content": []}}, {}, "at least 1 item"),
        ("talk.json", {"t": {"content": [{"agent": "a", "message": "x"}]}}, {"task": "color"}, "not to color"),
        ("paths.json", [{"name": "a", "subject": 1, "X": [1], "Y": []}], {}, "as many numbers"),
        ("paths.json", [{"name": "a", "subject": 1, "X": ["1"], "Y": [1]}], {}, "must be a number"),
        ("paths.json", [], {}, "no answers that can be imported"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_imported(
    tmp_path: Path, name: str, content: Any, more: dict[str, Any], message: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError) as refused:
        import_files([write(tmp_path / name, content)], out, **more)
    assert message in str(refused.value.problems)
    assert "Value error" not in str(refused.value.problems)
    assert not out.exists()


def test_a_table_of_peoples_answers(tmp_path: Path) -> None:
    words = 'stimulus,subject,response,age\nsun,05,moon,30\nsun,05,"star, bright",30\nsea,,wave,\n'
    out = tmp_path / "out"
    import_files([write(tmp_path / "mine.csv", words.encode())], out, task="word_association", unnamed=True)
    found = [(row["stimulus"], row["agent"], row["sample"], row["answer"]["word"]) for row in read_back(out, "humans")]
    assert found == [
        ("sun", "human:05", 0, "moon"),
        ("sun", "human:05", 1, "star, bright"),
        ("sea", "human:unknown", 0, "wave"),
    ]
    paths = write(tmp_path / "fv.csv", b'stimulus,response\na.jpg,"[[1, 2.5], [3, 4]]"\n')
    objects = write(tmp_path / "object.csv", b"stimulus,response\na.jpg,a cat\n")
    with pytest.raises(InputError) as refused:
        import_files([paths, objects], out, frame=(640, 480))
    assert [problem.message.partition(":")[0] for problem in refused.value.problems] == [
        "does not say who answered"
    ] * 2
    import_files([paths, objects], out, frame=(640, 480), unnamed=True)
    gaze, named = read_back(out, "humans")[3:]
    assert (gaze["task"], gaze["answer"]["fixations"], gaze["answer"]["frame"]) == (
        GAZE,
        [[1, 2.5], [3, 4]],
        [640, 480],
    )
    assert named["answer"]["labels"] == ["a cat"]
