"""Agents asked from a program: the records of ``generate``, from whatever a program has, without Ray."""

import ast
import asyncio
import json
import shutil
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage

from agents.errors import AgentStoppedError, InputError, UnavailableError
from agents.stimuli import parse_row
from serving import answer, load, open_run
from serving.cli import main
from serving.library.typed_records import TypedRecord, typed
from tests.helpers import in_process, served_here
from tests.helpers.run_folders import ANSWERS, agent_entry, record, write_run

EXAMPLES = Path(__file__).parents[3] / "examples"
PICTURES = EXAMPLES / "images"
COFFEE = PICTURES / "coffee.png"


def plain(record: TypedRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", by_alias=True)


def same(record: dict[str, Any]) -> dict[str, Any]:
    """What must not differ between two runs."""
    return {key: value for key, value in record.items() if key not in ("run", "timing", "created")}


def test_the_records_are_those_of_generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)
    source = tmp_path / "set.jsonl"
    out = tmp_path / "run"
    shutil.copytree(PICTURES, tmp_path / "images")
    rows = [row for row in (EXAMPLES / "demo.jsonl").read_text().splitlines() if "coffee" in row or "broken" in row]
    talk = {"id": "talk", "task": "conversation", "topic": "tea", "exchanges": 4}
    word = {"id": "word", "task": "word_association", "cue": "sun"}
    source.write_text("\n".join([*rows, json.dumps(talk), json.dumps(word)]))
    asked = ["mmcq", "center", "eliza~eliza", "null"]
    unsure = {"null": {"reject": 0.5, "attempts": 3}}
    settings = ["--set", "null.reject=0.5", "--set", "null.attempts=3"]
    call = ["generate", str(source), "--agents", ",".join(asked), "--out", str(out), "--samples", "2", "--seed", "5"]
    assert main([*call, *settings, "--replicas", "1"]) == 1  # a broken picture fails alone
    written = [
        json.loads(line) for name in asked for line in (out / "records" / f"{name}.jsonl").read_bytes().splitlines()
    ]
    found = [plain(one) for one in answer(asked, source, samples=2, seed=5, settings=unsure)]
    assert {one["status"] for one in found} >= {"ok", "failed"}
    assert any(one["attempts"] for one in found if one["agent"] == "null")

    def key(record: dict[str, Any]) -> tuple[Any, ...]:
        return record["agent"], record["stimulus"], record["sample"]

    assert [same(one) for one in sorted(found, key=key)] == [same(one) for one in sorted(written, key=key)]
    assert [key(one)[0] for one in found] == sorted((key(one)[0] for one in found), key=asked.index)


def test_a_picture_in_whatever_form_has_one_answer() -> None:
    with PILImage.open(COFFEE) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    row = parse_row('{"id": "x", "task": "color_estimation", "image": "coffee.png"}', root=PICTURES)
    with load("mmcq") as agents:
        by_path = agents.answer(images=[COFFEE, PICTURES / "china.jpg"])
        others = agents.answer(images=[pixels, PILImage.fromarray(pixels[:50]), COFFEE.read_bytes()])
        rows = agents.answer([row, {"image": {"bytes": COFFEE.read_bytes(), "path": None}, "task": "color_estimation"}])
        folder = agents.answer(images=PICTURES)
    assert [one.stimulus for one in by_path] == ["coffee.png", "china.jpg"]
    known = {one.stimulus: one for one in folder}
    assert len(known) == len(list(PICTURES.iterdir()))
    assert (by_path[0].answer, by_path[0].seed) == (known["coffee.png"].answer, known["coffee.png"].seed)
    assert others[0].answer == others[2].answer == rows[0].answer == rows[1].answer == by_path[0].answer
    assert len({one.stimulus for one in others}) == 3
    assert others[2].stimulus_sha256 == by_path[0].stimulus_sha256


def test_a_loaded_agent_is_asked_again_also_where_an_event_loop_runs(tmp_path: Path) -> None:
    async def in_a_notebook() -> list[list[str]]:
        with load("null", settings={"null": {"load_s": 0.01}}) as agents:
            first = agents.answer(cues=["sun", "moon"])
            again = [one.answer.word for one in agents.answer(cues=["moon", "sun"])]
            told: list[str] = []
            threads = [
                threading.Thread(target=lambda cue=cue: told.append(agents.answer(cues=cue)[0].answer.word))
                for cue in ("sun", "moon")
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with pytest.raises(InputError, match="closed"):
            agents.answer(cues="sun")
        with agents:
            assert agents.answer(cues="sun")[0].answer.word in told
        return [[one.answer.word for one in first], again[::-1], sorted(told)]

    first, again, told = asyncio.run(in_a_notebook())
    assert first == again
    assert told == sorted(first)
    assert answer("null", cues="sun", seed=1)[0].seed != answer("null", cues="sun")[0].seed


def test_everything_wrong_is_said_before_anything_is_loaded() -> None:
    broken = {"null": {"fail_load": True}}
    rows = [{"task": "word_association"}, {"id": "a", "task": "word_association", "cue": "b", "odd": [1]}]
    with pytest.raises(InputError) as caught:
        answer("null", rows, settings=broken)
    said = str(caught.value)
    assert "stimuli:1: cue: is missing" in said
    assert "stimuli:2: odd: is no field here" in said
    with pytest.raises(InputError, match="cannot be used") as caught:
        answer("mmcq", images=[COFFEE], settings={"mmcq": {"colors": -1}})
    assert "mmcq.colors" in str(caught.value)
    for wrong, reason in (
        ({"images": [COFFEE], "cues": "sun"}, "one of"),
        ({"cues": "sun"}, "nothing to answer"),
        ({"stimuli": [3]}, "not a int"),
        ({"cues": ["a", "a"], "agents": "null"}, "1 problem"),
        ({"images": [COFFEE], "agents": "null"}, "say with task"),
        ({"images": [COFFEE], "agents": ["mmcq", "mmcq"]}, "once"),
        ({"images": [COFFEE], "settings": {"gbvs": {}}}, "gbvs"),
        ({"images": [COFFEE], "samples": 0}, "samples"),
        ({"images": [COFFEE], "device": "gpu"}, "device"),
    ):
        with pytest.raises(InputError, match=reason):
            answer(**{"agents": "mmcq", **wrong})  # type: ignore[arg-type]
    with pytest.raises(AgentStoppedError, match="agent null could not be loaded"):
        answer("null", cues="sun", settings=broken)
    with pytest.raises(UnavailableError, match="agent detectron2-maskrcnn: "):
        load("detectron2-maskrcnn")
    with pytest.raises(AgentStoppedError, match="first 20 answers"):
        answer("null", cues=[f"c{i}" for i in range(40)], settings={"null": {"fail": "."}})


def test_records_of_a_run_typed_and_as_tables(tmp_path: Path) -> None:
    stimuli = [{"id": "s1", "task": "color_estimation", "image": "s1.png", "meta": {"n": 3}}]
    path = answer_record("attention_prediction", "s2", "gbvs")
    failed = record("s9", status="failed", answer=None, error={"code": "bad_image", "message": "cut off"})
    written = {"mmcq": [record(sample=0), record(sample=0, seed=9), failed], "gbvs": [path]}
    entries = {"mmcq": agent_entry("color_estimation"), "gbvs": agent_entry("attention_prediction")}
    run = open_run(write_run(tmp_path / "run", stimuli, written, entries))
    assert len(run) == 3
    assert [plain(one) for one in run] == [written["mmcq"][1], failed, path]
    assert [one.answer.frame for one in run.of(agent="gbvs", status="ok")] == [[640, 480]]
    assert [one.error.code for one in run.of(task="color_estimation", status="failed") if one.error] == ["bad_image"]
    table = run.to_arrow()
    assert table["answer.fixations"].to_pylist()[2] == path["answer"]["fixations"]
    assert table["meta.n"].to_pylist() == [3, None, None]
    frame = run.of(status="ok").to_pandas()
    assert frame["answer.color"].tolist()[0] == "red"
    assert "error.code" not in frame
    assert answer("null", cues=["sun", "moon"]).to_pandas()["stimulus.cue"].tolist() == ["sun", "moon"]


def answer_record(task: str, stimulus: str = "s1", agent: str = "a", **changes: Any) -> dict[str, Any]:
    return record(stimulus, task, agent, **{"answer": ANSWERS[task], **changes})


@pytest.mark.parametrize(("fit", "wanted"), [("bars", [0, 0, 600, 400]), ("stretch", [37.5, 0, 562.5, 400])])
def test_a_notebook_shows_a_screen_with_bars_without_them(fit: str, wanted: list[float]) -> None:
    """A picture of 600 x 400 stands on 640 x 400 pixels between bars of 20."""
    image = parse_row(json.dumps({"id": "i", "task": "color_estimation", "image": str(COFFEE)}), root="/")
    answer = {**ANSWERS["attention_prediction"], "fixations": [[40, 0], [600, 400]], "frame": [640, 400], "fit": fit}
    if fit == "bars":
        answer["fixations"] = [[20, 0], [620, 400]]
    figure = typed(answer_record("attention_prediction", answer=answer), lambda: image)
    page = ElementTree.fromstring(figure._repr_html_().replace("<br>", "<br/>"))
    svg = "{http://www.w3.org/2000/svg}"
    places = [float(circle.get(name, "nan")) for circle in page.findall(f".//{svg}circle") for name in ("cx", "cy")]
    assert places == pytest.approx(wanted)
    assert page.find(f".//{svg}svg").get("viewBox") == "0 0 600 400"
    assert "not said" not in "".join(page.itertext())


def test_a_notebook_shows_pictures_paths_boxes_and_text_and_no_markup_of_others(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x00"
    image = parse_row(json.dumps({"id": "i", "task": "color_estimation", "image": str(COFFEE)}), root="/")
    cue = parse_row(json.dumps({"id": "w", "task": "word_association", "cue": evil}))
    boxes = {"labels": [evil, "cup"], "scores": [0.9, 0.8], "boxes": [[10, 20, 30, 40], [1, 2, 3, 4]]}
    shown = [
        typed(answer_record("attention_prediction"), lambda: image),
        typed(answer_record("object_detection", answer=boxes), lambda: image),
        typed(answer_record("color_estimation", agent=evil), lambda: image),
        typed(answer_record("word_association", answer={**ANSWERS["word_association"], "word": evil}), lambda: cue),
        typed(answer_record("conversation")),
        typed(record(status="failed", answer=None, error={"code": "x", "message": evil})),
    ]
    for one in shown:
        assert "<script" not in one._repr_html_()
    paths, objects, colors, words, talk, failure = (
        ElementTree.fromstring(one._repr_html_().replace("<br>", "<br/>")) for one in shown
    )
    svg = "{http://www.w3.org/2000/svg}"
    assert (len(paths.findall(f".//{svg}circle")), len(objects.findall(f".//{svg}rect"))) == (3, 2)
    assert paths.find(f".//{svg}image").get("href", "").startswith("data:image/jpeg;base64,")
    assert "stretched to 640 x 480: not said" in "".join(paths.itertext())  # the picture is 600 x 400
    for element, text in ((colors, "red"), (words, "→"), (talk, "Ann"), (failure, "alert")):
        assert text in "".join(element.itertext())
    assert answer("null", cues=[f"c{i}" for i in range(40)])._repr_html_().count("<figure") == 24


def test_a_message_is_replied_to_as_by_the_server() -> None:
    said = "My cat is sad."
    [reply, other] = answer("eliza", messages=[said, "Hello"], seed=3)
    stimulus = {"id": reply.stimulus, "task": "conversation", "type": "HM", "history": [{"speaker": "A", "text": said}]}

    async def served(here: Any) -> tuple[int, Any]:
        body = {"agent": "eliza", "stimulus": stimulus, "seed": 3}
        found: tuple[int, Any] = await here.post("/answers", body)
        return found

    status, record = served_here.here(served, {"eliza": {}})
    assert status == 200
    assert {**same(record), "worker": None} == {**same(plain(reply)), "worker": None}
    assert [(one.turn, one.speaker, one.agent) for one in reply.answer.messages] == [(1, "B", "eliza")]
    assert other.answer != reply.answer


def test_ask_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    def ask(*arguments: str) -> tuple[int, str]:
        code = main(["ask", *arguments])
        return code, capsys.readouterr().out

    assert ask("mmcq", "--image", str(COFFEE)) == ask("mmcq", str(COFFEE)) == (0, "brown\n")
    assert same(json.loads(ask("mmcq", str(COFFEE), "--json")[1])) == same(plain(answer("mmcq", images=COFFEE)[0]))
    code, out = ask("null,null-one", "--cue", "sun", "--cue", "moon", "--set", "null.fail=moon")
    assert code == 1
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        [cue, agent] for agent in ("null", "null-one") for cue in ("sun", "moon")
    ]
    assert "failed: told_to_fail" in out
    assert ask("eliza~eliza", "--topic", "tea")[1].count(": ") >= 24
    assert ask("eliza", "--message", "tea")[1].startswith("B: ")
    assert ask("center,null", "--image", str(COFFEE), "--task", "attention")[0] == 0
    assert ask("eliza", "--topic", "tea")[0] == ask("eliza~eliza", "--message", "tea")[0] == 2
    assert ask("mmcq")[0] == ask("mmcq", "--cue", "sun")[0] == ask("mmcq", "--image", "no.png")[0] == 2
    assert ask("null", "--cue", "sun", "--set", "null.fail_load=true")[0] == 3


def test_what_a_filter_notes_of_an_answer_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two gray pictures, which the papers' map calls green, and a red one."""
    for name, color in (("a", (68, 68, 68)), ("b", (52, 52, 52)), ("c", (255, 0, 0))):
        PILImage.new("RGB", (9, 9), color).save(tmp_path / f"{name}.png")
    assert main(["ask", "mmcq", *(str(tmp_path / f"{name}.png") for name in "abc")]) == 0
    out, err = capsys.readouterr()
    assert out.count("green") == 2
    [line] = err.splitlines()
    assert line.startswith("noted by mmcq's filter gray_with_a_hue: a.png: the dominant colour (68, 68, 68) is ")
    assert line.endswith(" (the first of 2 answers)")
    assert main(["ask", "mmcq-lab", *(str(tmp_path / f"{name}.png") for name in "abc")]) == 0
    assert capsys.readouterr().err == ""


def test_the_lines_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a notebook runs them: the value of each cell that is an expression is shown."""
    readme = (EXAMPLES.parent / "README.md").read_text()
    lines = readme.split("```python\n")[1].split("```")[0]
    (tmp_path / "examples").symlink_to(EXAMPLES)
    words = {"minilm": [answer_record("word_association", "sun", "minilm")]}
    write_run(tmp_path / "demo-run" / "answers", [], words, {"minilm": agent_entry("word_association")})
    monkeypatch.chdir(tmp_path)
    shown = []
    names: dict[str, Any] = {}
    for cell in ast.parse(lines).body:
        if isinstance(cell, ast.Expr):
            shown.append(eval(ast.unparse(cell), names))
        else:
            exec(ast.unparse(cell), names)
    color, talk, paths, table = shown
    assert f".answer.color  # {color!r}" in lines
    assert talk._repr_html_().count("<br>") >= 24
    assert repr(talk).startswith("[<eliza~eliza of ")
    assert len(repr(talk)) < 250
    assert len(paths) == len(table) == 4
    assert paths._repr_html_().count("<polyline") == 4
    assert capsys.readouterr().out == "sun minilm together\n"
