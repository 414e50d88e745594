"""The report page: complete, self-contained, and deaf to whatever models, people and files put into it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.answers import BY_TASK
from agents.errors import InputError, StorageError
from serving.runs.records import problems
from serving.web import report_alarms
from serving.web.report import write_report

RUN = "0123456789ab"
EVIL = '<script>alert(1)</script>"\' onload=alert(2) x="<img src=http://evil.example/x>'
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"])
COLOR = {
    "color": "red",
    "css_name": "crimson",
    "rgb": [220, 20, 60],
    "palette": [{"rgb": [220, 20, 60], "population": 9}],
}
PATH = {
    "fixations": [[20, 15], [30, 5], [3, 28]],
    "frame": [40, 30],
    "window": 6,
    "stop": "maximum",
    "found": None,
    "found_at": None,
    "forced_first": True,
    "selection": "maximum",
    "durations_ms": None,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "color_estimation": COLOR,
    "object_detection": {
        "labels": ["zebra", "dining table"], "scores": [0.9, 0.25], "boxes": [[1, 2, 10, 12], [5, 5, 3, 3]],
    },
    "attention_prediction": PATH,
    "image_captioning": {"text": "a quiet harbour", "tokens": 4, "score": -0.5, "finish": "stop", "flags": ["cut"]},
    "word_association": {
        "word": "clock", "candidates": ["timely", "clock"], "skipped": [{"word": "timely", "rule": "overlap"}],
    },
    "conversation": {
        "messages": [
            {
                "turn": i, "speaker": "AB"[i % 2], "agent": "talker", "text": text, "raw": None, "at": None,
                "finish": None, "delay_s": None,
            }
            for i, text in enumerate(["good morning", "is it?"])
        ],
        "ended_early": True,
    },
    "judgement": {"verdict": "machine", "confidence": None, "reason": "nobody says this"},
}  # fmt: skip


class Page(HTMLParser):
    """A page as a browser reads it: elements with their attributes, text, and whether everything is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


class Folder:
    """A run folder made by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path / "run"
        self.set = path / "set"
        (self.path / "records").mkdir(parents=True)
        self.set.mkdir()
        self.stimuli: list[dict[str, Any]] = []
        self.agents: dict[str, Any] = {}
        self.records: dict[str, list[dict[str, Any]]] = {}

    def picture(self, name: str, color: tuple[int, int, int] = (200, 30, 60)) -> str:
        PILImage.new("RGB", (40, 30), color).save(self.set / name)
        return name

    def ask(self, task: str, name: str, **fields: Any) -> dict[str, Any]:
        row = {"id": name, "task": task, **fields}
        self.stimuli.append(row)
        return row

    def agent(self, name: str, task: str, **fields: Any) -> None:
        self.agents[name] = {
            "task": [task], "kind": "machine", "digest": "d" * 64, "settings": {}, "checkpoint": None,
            "revision": None, "samples": 1, "versions": {}, "provenance": {}, **fields,
        }  # fmt: skip

    def record(self, agent: str, row: dict[str, Any], answer: dict[str, Any] | None = None, **fields: Any) -> None:
        imported = fields.get("kind") in ("human", "published")
        record = {
            "schema": "turinglike.record/1", "run": RUN, "task": row["task"], "stimulus": row["id"],
            "stimulus_sha256": None, "agent": agent, "kind": "machine", "sample": 0, "seed": None if imported else 7,
            "status": "ok", "answer": answer, "raw": None, "attempts": [], "error": None,
            "provenance": {"digest": None, "checkpoint": None, "revision": None}, "timing": None, "worker": None,
            "created": None if imported else "2026-01-02T03:04:05.678Z", **fields,
        }  # fmt: skip
        kind = {"human": "humans", "published": "published"}.get(record["kind"], agent)
        self.records.setdefault(kind, []).append(record)

    def write(self) -> Path:
        meta: dict[str, Any] = {
            "schema": "turinglike.run/1", "run": RUN, "created": "2026-01-02T03:04:05.678Z", "turinglike": "0.1.0",
            "seed": 3, "samples": 1, "set": {}, "agents": self.agents,
        }  # fmt: skip
        if self.stimuli:
            count = len(self.stimuli)
            meta["set"] = {"source": "set.jsonl", "root": str(self.set), "count": count, "sha256": "e" * 64}
            (self.path / "stimuli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.stimuli))
        for name, records in self.records.items():
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (self.path / "records" / f"{name}.jsonl").write_text(lines)
        (self.path / "run.json").write_text(json.dumps(meta))
        return self.path

    def page(self, **options: Any) -> Page:
        page = Page(write_report(self.write(), **options))
        self_contained(page)
        return page


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def self_contained(page: Page) -> None:
    """No request, no script, no way to name another place."""
    urls = (
        "src",
        "href",
        "srcset",
        "data",
        "poster",
        "action",
        "formaction",
        "background",
        "cite",
        "ping",
        "xlink:href",
    )
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "object", "embed", "link", "base", "form", "audio", "video", "img")
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in urls:
                assert value is not None
                assert value.startswith(("#", "data:image/jpeg;base64,")), (tag, name, value)
                if value.startswith("#"):
                    assert value[1:] in ids, value
            if name == "style":
                assert re.fullmatch(r"[-a-z0-9(),:;#. ]*", value or ""), value
    policies = [a["content"] for a in page.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert "default-src 'none'" in str(policies[0])
    assert "script" not in str(policies[0])
    for style in re.findall(r"<style>(.*?)</style>", page.source, re.DOTALL):
        assert "url(" not in style
        assert "@import" not in style


def all_tasks(folder: Folder) -> list[dict[str, Any]]:
    picture = folder.picture("harbour.png")
    rows = []
    for task in BY_TASK:
        fields: dict[str, Any] = {"image": picture}
        if task == "word_association":
            fields = {"cue": "time"}
        if task == "conversation":
            fields = {"topic": "boats", "history": [{"speaker": "A", "text": "as I was saying", "at": None}]}
        rows.append(folder.ask(task, f"{task}/1", **fields))
        folder.agent(f"agent-{task[:4]}", task)
    return rows


def test_every_kind_of_answer_is_shown(folder: Folder) -> None:
    for row in all_tasks(folder):
        folder.record(f"agent-{row['task'][:4]}", row, ANSWERS[row["task"]])
    for records in folder.records.values():
        assert problems(records[0]) == []
    page = folder.page()
    for word in ("red", "crimson", "#dc143c", "zebra", "dining table", "0.25", "a quiet harbour", "clock", "overlap",
                 "good morning", "is it?", "ended early", "as I was saying", "(30, 5)", "forced", "6 px"):  # fmt: skip
        assert word in page.text, word
    assert "does not have the form" not in page.text
    # Four tasks show one picture: it is in the page once, and the two drawings over it refer to it.
    assert len(page.named("image")) == 1
    assert len(page.named("use")) == 2
    assert [a["points"] for a in page.named("polyline")] == ["20,15 30,5 3,28"] * 2
    assert len([a for a in page.named("section") if "shown" in str(a.get("class"))]) == 3
    assert page.named("html")[0]["lang"] == "en"
    assert all(attributes.get("aria-label") for attributes in page.named("svg"))


def test_answers_side_by_side_with_people_and_published(folder: Folder) -> None:
    row = folder.ask("color_estimation", "a", image=folder.picture("a.png"), benchmark_id="1017.jpg")
    for name in ("first", "second"):
        folder.agent(name, "color_estimation")
        folder.record(name, row, COLOR)
    answer = {"color": "none", "css_name": None, "rgb": None, "palette": None}
    folder.record("human:05", {**row, "id": "1017.jpg"}, answer, kind="human")
    folder.record("published:git", {**row, "id": "1017.jpg"}, {**answer, "color": "blue"}, kind="published")
    page = folder.page()
    cards = [a for a in page.named("article") if a["class"] == "card ok"]
    assert len(cards) == 4
    for word in ("human:05", "published:git", "none", "people (1 participant)"):
        assert word in page.text


def test_nothing_that_was_said_becomes_markup(folder: Folder) -> None:
    picture = folder.picture("a.png")
    agent = "evil"
    folder.agent(
        agent, "color_estimation", settings={EVIL: EVIL}, checkpoint=EVIL, revision=EVIL, digest=EVIL,
        versions={EVIL: EVIL}, provenance={EVIL: [EVIL]},
    )  # fmt: skip
    for task, answer in ANSWERS.items():
        row = folder.ask(task, f"{task} {EVIL}", image=picture, meta={EVIL: EVIL}, source=EVIL, cue=EVIL, topic=EVIL)
        evil = json.loads(re.sub(r'(?<=: )"(?!(maximum|stop)")[^"]*"', lambda _: json.dumps(EVIL), json.dumps(answer)))
        if task == "object_detection":
            evil["labels"] = [EVIL, EVIL]
        attempts = [
            {"attempt": 0, "turn": None, "seed": 1, "answer": evil, "raw": EVIL,
             "verdicts": [{"filter": EVIL, "rejected": True, "found": EVIL}]}
        ]  # fmt: skip
        folder.record(agent, row, evil, raw={EVIL: EVIL}, attempts=attempts, worker={EVIL: EVIL})
        folder.record(agent, row, evil, sample=1, kind=EVIL, created=EVIL)
        folder.record(agent, row, sample=2, status="failed", error={"code": EVIL, "message": EVIL})
        folder.record(agent, row, {"color": {EVIL: EVIL}}, sample=3)
    folder.ask(EVIL, EVIL, image=EVIL)
    folder.ask("image_captioning", "x", image=f"{EVIL}.png", history=[{"speaker": EVIL, "text": EVIL, "at": EVIL}])
    page = folder.page()
    assert "alert(1)" in page.text  # it is text
    assert {"alert", "onload", "x"}.isdisjoint(
        name for _, attributes in page.elements for name in attributes if name != "x"
    )
    assert not any(
        "evil.example" in str(value) for tag, a in page.elements for key, value in a.items() if key != "aria-label"
    )


def test_control_characters_and_surrogates_cannot_break_the_page(folder: Folder) -> None:
    row = folder.ask("image_captioning", "a\u202e", image=folder.picture("a.png"))
    folder.agent("x", "image_captioning")
    folder.record("x", row, {**ANSWERS["image_captioning"], "text": "a\x00b\x1b[31m\u202ec\ufffe"})
    page = folder.page()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe]", page.source)
    assert "a\ufffdb\ufffd[31m" in page.text


def test_order_by_population_alone_is_said_where_it_differs(folder: Folder) -> None:
    row = folder.ask("color_estimation", "a", image=folder.picture("a.png"))
    folder.agent("mmcq", "color_estimation")
    palette = [{"rgb": [4, 4, 252], "population": 100}, {"rgb": [252, 4, 4], "population": 300}]
    empty = {"rgb": [0, 0, 0], "population": 0}
    answer = {"color": "blue", "css_name": "blue", "rgb": [4, 4, 252], "palette": [*palette, empty]}
    folder.record("mmcq", row, answer)
    page = folder.page()
    assert re.search(r"By population alone the first colour would be #fc0404 , red : 75 % of the pixels", page.text)
    grow = [str(a["style"]).split(";")[0] for a in page.named("span") if "flex-grow" in str(a.get("style"))]
    assert grow == ["flex-grow:100", "flex-grow:300"]
    folder.records["mmcq"][0]["answer"]["palette"].reverse()
    assert "By population alone" not in folder.page().text


def test_scanpath_on_another_frame_long_and_outside(folder: Folder) -> None:
    row = folder.ask(
        "attention_prediction", "a", image=folder.picture("a.png"), mode="search", target_box=[10, 10, 4, 4]
    )
    folder.agent("gbvs", "attention_prediction")
    points = [[640, 512], [-12, 1324], *([float(i), 7.25] for i in range(78))]
    folder.record(
        "gbvs",
        row,
        {**PATH, "fixations": points, "frame": [1280, 1024], "stop": "target", "found": True, "found_at": 79},
    )
    page = folder.page()
    assert "The first 15 of 80 fixations are drawn" in page.text
    assert "1 fixation outside the frame: 2 (-12, 1324)" in page.text
    assert "found at fixation 80" in page.text  # counted from 1, as the drawing does
    assert len([a for a in page.named("circle") if "fixation" in str(a["class"])]) == 15
    assert [a["transform"] for a in page.named("g")] == ["scale(32 34.1333)"]
    box = next(a for a in page.named("rect") if a["class"] == "box")
    assert (box["x"], box["width"]) == ("320", "128")


def test_failures_in_plain_words(folder: Folder) -> None:
    (folder.set / "cut.jpg").write_bytes(_jpeg()[:600])
    row = folder.ask("color_estimation", "cut", image="cut.jpg")
    folder.agent("mmcq", "color_estimation")
    folder.record("mmcq", row, status="failed", error={"code": "bad_image", "message": "cut.jpg: it is truncated"})
    folder.record("mmcq", row, status="rejected", sample=1, attempts=[
        {"attempt": 0, "turn": None, "seed": 1, "answer": COLOR, "raw": None,
         "verdicts": [{"filter": "words", "rejected": True, "found": "four words"}]}])  # fmt: skip
    page = folder.page()
    for words in ("bad_image", "not an image whose pixels can be decoded", "cut.jpg: it is truncated",
                  "The picture cannot be shown", "No attempt passed", "1 rejected attempt", "four words"):  # fmt: skip
        assert words in page.text, words


def test_what_filters_only_noted_is_not_told_as_rejected(folder: Folder) -> None:
    row = folder.ask("conversation", "c", topic="boats")
    folder.agent("a~b", "conversation")
    said = [{"turn": 0, "speaker": "Ann", "agent": "a", "text": "I like it"}]
    noted, rejected = (
        {"attempt": number, "turn": None, "seed": 1, "answer": {"messages": said}, "raw": None,
         "verdicts": [{"filter": name, "rejected": name == "empty", "found": f"found {name}"}]}
        for number, name in ((0, "early_exit"), (10_000, "empty")))  # fmt: skip
    folder.record("a~b", row, {"messages": said}, attempts=[noted])
    text = folder.page().text
    assert "1 attempt that filters noted something in" in text
    assert "found early_exit" in text
    assert "rejected attempt" not in text
    assert text.count("I like it") == 1
    folder.record("a~b", row, {"messages": said}, attempts=[noted, rejected])
    text = folder.page().text
    assert "1 rejected attempt" in text
    assert text.count("I like it") == 2


def test_last_line_of_a_key_counts_and_gaps_are_counted(folder: Folder) -> None:
    rows = [folder.ask("color_estimation", f"{i}", image=folder.picture(f"{i}.png")) for i in range(4)]
    folder.agent("mmcq", "color_estimation", samples=2)
    folder.record("mmcq", rows[0], status="failed", error={"code": "timeout", "message": "too slow"})
    folder.record("mmcq", rows[1], COLOR)
    folder.record("mmcq", rows[0], COLOR)
    page = folder.page()
    assert "too slow" not in page.text
    assert re.search(r"mmcq Colour estimation 2 \(100 %\) 0 0 6 1.00", page.text)
    assert page.text.count("No agent has answered yet") == 2


def test_missing_changed_and_moved_pictures(folder: Folder) -> None:
    kept = folder.ask("color_estimation", "kept", image=folder.picture("kept.png"))
    gone = folder.ask("color_estimation", "gone", image=folder.picture("gone.png"))
    folder.agent("mmcq", "color_estimation")
    for row in (kept, gone):
        folder.record("mmcq", row, COLOR, stimulus_sha256="0" * 64)
    (folder.set / "gone.png").unlink()
    page = folder.page()
    assert "The picture cannot be shown: gone.png: no such file" in page.text
    assert page.text.count("has changed since it was answered") == 1
    assert len(page.named("image")) == 1
    folder.set.rename(folder.set.with_name("elsewhere"))
    page = folder.page()
    assert f"the folder {folder.set} , where they were when the run was made, is not there" in page.text
    assert page.named("image") == []
    assert page.text.count("crimson") == 2


def test_a_picture_that_is_no_regular_file_does_not_block(folder: Folder, tmp_path: Path) -> None:
    folder.ask("color_estimation", "dir", image=".")
    folder.ask("color_estimation", "text", image="text.jpg")
    (folder.set / "text.jpg").write_text("no picture")
    page = folder.page()
    assert page.text.count("The picture cannot be shown") == 2


@pytest.mark.parametrize("value", [None, 1, -1.5, "x", [], ["x", None, {}, 1], {"x": [{}]}, True, 10**18, ""])
def test_stimuli_and_answers_of_any_shape_are_survived(folder: Folder, value: Any) -> None:
    """An invalid row is kept as it was in the set, and an answer may come from another program."""
    picture = folder.picture("a.png")
    for task, answer in ANSWERS.items():
        folder.agent(task[:4], task, versions=value, provenance=value)
        for name in answer:
            row = folder.ask(task, f"{task} {name}", image=picture)
            row.update(
                dict.fromkeys(["target_box", "history", "meta", "source", "benchmark_id", "cue", "topic"], value)
            )
            folder.record(task[:4], row, {**answer, name: value}, timing=value, worker=value, attempts=[value])
    folder.ask("attention_prediction", "odd", image=value)
    folder.stimuli.append({"id": value, "task": value})
    assert "odd" in folder.page().text


def test_only_a_page_of_ours_is_replaced(folder: Folder, tmp_path: Path) -> None:
    folder.agent("mmcq", "color_estimation")
    run = folder.write()
    for name in ("run.json", "stimuli.jsonl", "stimuli.index", "lock", "import.json", "records/x.html", "turns/x"):
        with pytest.raises(InputError, match="keeps its own files"):
            write_report(run, run / name)
    assert json.loads((run / "run.json").read_text())["run"] == RUN
    thesis = tmp_path / "thesis.html"
    thesis.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="is not a report of ours"):
        write_report(run, thesis)
    assert thesis.read_text() == "<html>mine</html>"
    with pytest.raises(InputError, match="not a plain file"):
        write_report(run, "/dev/null")
    page = tmp_path / "page.html"
    write_report(run, page)
    write_report(run, page)
    (run / "report.html").write_text("from an older version")
    assert write_report(run).read_bytes()[:15] == b"<!DOCTYPE html>"


def test_cells_say_their_column_on_a_narrow_screen(folder: Folder) -> None:
    folder.agent("mmcq", "color_estimation")
    row = folder.ask("color_estimation", "a")
    folder.record("mmcq", row, None, status="failed", error={"code": "bad_image", "message": "cut"})
    columns = [cell["data-column"] for cell in folder.page().named("td")]
    assert columns == [
        *["task", "ok", "rejected", "failed", "unanswered", "attempts per answer", "kind"],
        *["agent", "records", "first example"],
    ]


def test_an_empty_run_and_what_is_no_run(folder: Folder, tmp_path: Path) -> None:
    folder.agent("mmcq", "color_estimation")
    page = folder.page()
    assert "There is no record yet" in page.text
    assert "nothing to show" in page.text
    with pytest.raises(InputError):
        write_report(tmp_path / "nowhere")


def test_imported_answers_without_a_set(folder: Folder) -> None:
    row = {"id": "0001.jpg", "task": "image_captioning"}
    folder.record("human:01", row, ANSWERS["image_captioning"], kind="human")
    page = folder.page()
    assert "a quiet harbour" in page.text
    assert "0001.jpg" in page.text


def test_huge_text_and_many_stimuli_are_cut_and_said_to_be(folder: Folder) -> None:
    folder.agent("x", "image_captioning", samples=30)
    for i in range(30):
        row = folder.ask("image_captioning", f"s{i}", image=folder.picture(f"{i}.png"))
        folder.record("x", row, {**ANSWERS["image_captioning"], "text": "<&" * 500_000})
    for sample in range(1, 30):
        folder.record("x", folder.stimuli[0], ANSWERS["image_captioning"], sample=sample)
    page = folder.page(max_stimuli=7)
    assert len(page.source) < 500_000
    assert "more characters" in page.text
    assert "7 stimuli of 30" in page.text
    assert "25 more answers not shown" in page.text
    assert re.search(r"x Image captioning 59 \(100 %\)", page.text)  # counts are of everything


def test_a_page_has_a_largest_size(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.web.report.PAGE_LIMIT", 5_000)
    folder.agent("x", "color_estimation")
    for i in range(30):
        folder.record("x", folder.ask("color_estimation", f"s{i}", image=folder.picture("a.png")), COLOR)
    page = folder.page()
    assert "more text than one page can hold" in page.text


def test_damaged_lines_are_said(folder: Folder) -> None:
    row = folder.ask("color_estimation", "a", image=folder.picture("a.png"))
    folder.agent("x", "color_estimation")
    folder.record("x", row, COLOR)
    path = folder.write()
    file = path / "records" / "x.jsonl"
    file.write_text('{"nonsense": 1}\n' + file.read_text() + '{"torn": ')
    page = Page(write_report(path))
    assert "1 line could not be read as records" in page.text
    assert "crimson" in page.text


def test_a_failed_write_leaves_the_former_page(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.ask("color_estimation", "a", image=folder.picture("a.png"))
    target = folder.path / "report.html"
    target.write_text("the former page")

    def full(*args: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serving.web.report_html.section", full)
    with pytest.raises(StorageError, match="No space left"):
        write_report(folder.write())
    assert target.read_text() == "the former page"
    assert [path.name for path in folder.path.iterdir() if path.name.startswith(".")] == []
    with pytest.raises(StorageError):
        write_report(folder.path, folder.path / "no" / "such" / "folder" / "page.html")


def test_provenance_says_what_made_the_answers(folder: Folder) -> None:
    folder.ask("color_estimation", "a", image=folder.picture("a.png"))
    folder.agent("mmcq", "color_estimation", settings={"quality": 4}, versions={"numpy": "9.9"})
    folder.agent(
        "other", "image_captioning", provenance={"random_weights": True}, checkpoint="some/model", revision="abc"
    )
    folder.agent("trick", "color_estimation", kind="control")
    page = folder.page()
    for words in (RUN, "e" * 64, "d" * 64, "a variant of the papers' agent", "numpy 9.9", '"quality": 4',
                  "RANDOM WEIGHTS", "some/model", "other is not in this catalogue", "control: odd"):  # fmt: skip
        assert words in page.text, words
    assert page.text.count("RANDOM WEIGHTS") == 1


# Alarms


def _answered(folder: Folder, task: str, said: dict[str, list[dict[str, Any]]], **fields: Any) -> Page:
    """A run in which the agents of ``said`` gave these answers, to one picture each."""
    for agent, answers in said.items():
        folder.agent(agent, task)
        for index, answer in enumerate(answers):
            row = {"id": f"s{index}", "task": task, "image": folder.picture(f"{index}.png", (index, 0, 0))}
            if row not in folder.stimuli:
                folder.stimuli.append(row)
            folder.record(agent, row, answer, **{"stimulus_sha256": f"{index:064x}", **fields})
    return folder.page()


def _colors(words: str) -> list[dict[str, Any]]:
    return [{**COLOR, "color": word} for word in words.split()]


EIGHT = "red blue green red brown black white pink"


def _paths(*shifts: int) -> list[dict[str, Any]]:
    return [{**PATH, "fixations": [[20, 15], [shift, 5], [3, 28]]} for shift in shifts]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"a": _colors(EIGHT), "b": _colors(EIGHT)}, "a and b gave the same answer to 8 of the 8 stimuli"),
        ({"a": _colors(EIGHT), "b": _colors(EIGHT.replace("brown", "gray"))}, "Alarms None."),
        ({"a": _colors("gray " * 7 + "red")}, "a gave one answer to 7 of 8 stimuli (color_estimation). Example: gray"),
        ({"a": _colors("gray " * 7)}, "Alarms None. Too few answers to say anything: a (color_estimation)"),
        (
            {"g": _paths(1, 2, 3, 4, 5, 6, 7, 1)},
            "g looked along the same path at 2 of 8 different pictures. Example: 0.png, 7.png",
        ),
        ({"g": _paths(1, 2, 3, 4, 5, 6, 7, 8)}, "Alarms None."),
    ],
)
def test_alarms(folder: Folder, said: dict[str, list[dict[str, Any]]], told: str) -> None:
    task = "attention_prediction" if "g" in said else "color_estimation"
    assert told in _answered(folder, task, said).text


def test_one_picture_under_two_names_may_have_one_path(folder: Folder) -> None:
    page = _answered(folder, "attention_prediction", {"g": _paths(*[1] * 9)}, stimulus_sha256="1" * 64)
    assert "Alarms None." in page.text


def test_controls_and_people_raise_no_alarm(folder: Folder) -> None:
    page = _answered(folder, "color_estimation", {"a": _colors("gray " * 9), "b": _colors("gray " * 9)}, kind="control")
    assert "There are no answers to look at" in page.text
    assert report_alarms.LEAST <= 9


def test_published_answers_that_copy_each_other(folder: Folder) -> None:
    words = [{"word": word, "candidates": None, "skipped": []} for word in EIGHT.split()]
    for index, answer in enumerate(words):
        row = folder.ask("word_association", f"w{index}", cue=f"cue{index}")
        for name in ("published:gpt2", "published:davinci"):
            folder.record(name, row, answer, kind="published")
    assert "published:davinci and published:gpt2 gave the same answer to 8 of the 8" in folder.page().text


def _jpeg() -> bytes:
    file = BytesIO()
    PILImage.effect_noise((64, 64), 90).convert("RGB").save(file, "JPEG")
    return file.getvalue()
