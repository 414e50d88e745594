"""The papers' figures: what the file holds, and ours beside them."""

import csv
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import pytest

from agents import catalogue
from agents.stimuli import TASKS
from judging.judges.classifier import ClassifierSettings
from judging.judges.papers_classifiers import differences_from_paper
from judging.scores.papers.beside_published import OurFigures, beside_published
from judging.scores.papers.parts import PARTS
from judging.scores.papers.published import CLASSIFIER, MODEL, PAPERS, PublishedFigure, published, stands_for
from judging.statistics.measures import MEASURES, Score
from judging.statistics.tables import Estimate
from serving.cli import main
from tests.helpers import in_process

SETTINGS: dict[str, dict[str, Any]] = {
    "svm": {"split": "stimulus"},
    "svm-paper-code": {"split": "row", "scaled": False, "pictures": "deep"},
    "forest": {"split": "stimulus", "scaled": False, "model": "forest"},
    "cue-length": {"split": "stimulus", "cue": "length"},
    "llm-judge": {"prompt": "own"},
}


def _score(task: str, judge: str, agent: str, value: float) -> Score:
    estimate = Estimate(value, value - 0.02, value + 0.02)
    measures: dict[str, Any] = dict.fromkeys(MEASURES, estimate)
    return Score(task=task, judge=judge, agent=agent, **measures)


def _beside(paper: Literal["2022", "2025"], *scores: Score) -> dict[tuple[str, ...], PublishedFigure]:
    rows = beside_published(paper, OurFigures(scores=scores, settings=SETTINGS, cues={"cue-length"}))
    return {
        (row.task, row.kind, row.agent, row.measure, row.only, row.judge or "", row.our_agent or ""): row
        for row in rows
    }


def test_the_file_is_whole() -> None:
    names = {item["name"]: item["asked"] for item in published()["agents"]}
    keys = set()
    for cell in published()["cells"]:
        assert cell["paper"] in PAPERS
        assert cell["judge"] in ("people", CLASSIFIER, MODEL)
        assert cell["agent"] == "all" or cell["asked"] in names[cell["agent"]]
        key = (*(cell[name] for name in ("paper", "asked", "judge", "agent", "measure")), cell.get("only"))
        assert key not in keys
        assert "only" not in cell or cell["only"] in PARTS or cell["measure"] in ("pass_rate", "words")
        keys.add(key)
    assert {cell.get("only", "") for cell in published()["cells"]} >= set(PARTS)
    for paper in PAPERS:
        for asked, agents in published()["papers"][paper]["agents"].items():
            assert all(asked in names[agent] for agent in agents)
    entries = catalogue.entries()
    assert all(own in entries for item in published()["agents"] for own in item["ours"])


def test_a_name_stands_for_one_agent_of_a_task() -> None:
    result = defaultdict(list)
    for item in published()["agents"]:
        for asked in item["asked"]:
            for name in {*item["imported"], *item["ours"]}:
                result[asked, name].append(item["name"])
    assert [key for key, names in result.items() if len(names) > 1] == []
    assert stands_for("published:Microsoft_API", "image_captioning") == "Azure"
    assert {stands_for(f"published:{name}", "color_estimation") for name in ("histogram", "mmcq", "MCCQ")} == {"MCCQ"}
    assert stands_for("gpt2-embedding", "word_association") == "GPT2"
    assert stands_for("published:gpt3promptdav", "word_association") == "GPT3-davinci"  # of the published test
    assert stands_for("published:gpt3-davinci", "word_association") == "GPT3-davinci"
    assert stands_for("published:git", "word_association") is None


def test_ours_stand_beside_theirs_of_the_same_kind_of_judge() -> None:
    asked = "image_captioning"
    result = _beside(
        "2025",
        _score(asked, "people", "all", 0.68),
        _score(asked, "people", "published:blip", 0.36),
        _score(asked, "people", "published:clipcap", 0.50),
        _score(asked, "people", "blip-base", 0.37),
        _score(asked, "people", "mine", 0.37),
        _score(asked, "cue-length", "all", 0.67),
        _score(asked, "svm", "all", 0.72),
    )
    assert not any(key[5] == "cue-length" for key in result)
    overall = result[asked, "people", "all", "p_human", "", "people", "all"]
    assert (overall.published, overall.ours, overall.inside) == (0.67, 0.68, True)
    assert overall.why.startswith("without GIT, OFA, Azure,")
    assert result[asked, "people", "BLIP", "p_machine", "", "people", "published:blip"].why == ""
    assert result[asked, "people", "BLIP", "p_machine", "", "people", "blip-base"].why.startswith("blip-base is not")
    assert not result[asked, "people", "ClipCap", "p_machine", "", "people", "published:clipcap"].inside
    svm = result[asked, "classifier", "all", "p_human", "", "svm", "all"]
    assert svm.inside
    assert "MiniLM where theirs had OpenAI's" in svm.why
    lacking = result[asked, "people", "ChatGPT-4o", "detectability", "", "", ""]
    assert (lacking.has_ours, lacking.why) == (False, "no verdicts on ChatGPT-4o")
    assert result["conversation", "people", "all", "p_human", "", "", ""].why == "no trials of this task"


@pytest.mark.parametrize("judge", ["svm-paper-text", "svm-paper-code", "forest", "svm"])
@pytest.mark.parametrize("asked", TASKS)
def test_no_classifier_of_the_catalogue_is_called_the_papers_without_a_word(judge: str, asked: str) -> None:
    """MiniLM or BERT stands where the papers had another; scanpaths have fewer partitions."""
    chosen = ClassifierSettings(**catalogue.entries()[judge].settings).model_dump()
    for paper in PAPERS:
        figures = OurFigures(scores=[_score(asked, judge, "all", 0.7)], settings={judge: chosen})
        beside = beside_published(paper, figures)
        assert all(row.why for row in beside)
        output = "; ".join(differences_from_paper(paper, asked, chosen))
        assert ("MiniLM" in output) == (asked != "attention_prediction" and judge in ("svm", "svm-paper-code"))
    ours = {"svm-paper-text": "word2vec, gpt2-embedding, openai-embedding", "forest": "google-bert"}.get(
        judge, "MiniLM"
    )
    assert asked != "word_association" or ours in output
    assert ("withdrawn" in output) == (asked in ("image_captioning", "word_association"))
    assert (asked == "conversation" and judge != "svm-paper-text") == ("mean of a speaker's sentences" in output)
    assert (asked == "color_estimation" and judge == "svm") == ("no features of the picture" in output)
    as_theirs = chosen | {"checkpoint": "bert-base-uncased", "scaled": False, "model": "svm", "pictures": "deep"}
    if asked in ("color_estimation", "object_detection"):
        assert [*differences_from_paper("2025", asked, as_theirs)] == []


def test_the_command_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions of people, of a machine that repeats what they write about, and of two others."""
    in_process.without_ray(monkeypatch)
    chance = random.Random(0)
    things = ["a dog on the grass", "two men in a boat", "a red bus", "a plate of food", "a cat on a chair"]
    speakers = [("human", "01"), ("human", "02"), ("machine", "git"), ("machine", "blip"), ("machine", "microsoft_api")]
    truth = {
        f"{at:04}.jpg": [
            {
                "response": f"{things[at % 5]} with {chance.choice('abcdefgh')} {at}",
                "groundtruth": who,
                f"{who}_groundtruth": name,
            }
            for who, name in speakers
        ]
        for at in range(30)
    }
    (tmp_path / "caption.json").write_text(json.dumps(truth))
    assert main(["import", str(tmp_path / "caption.json"), "--out", str(tmp_path / "P")]) == 0
    assert main(["trials", str(tmp_path / "P"), "--out", str(tmp_path / "T"), "--every"]) == 0
    assert main(["judge", str(tmp_path / "T"), "--judges", "svm", "--out", str(tmp_path / "V")]) == 0
    out = tmp_path / "S"
    assert main(["score", str(tmp_path / "V"), "--out", str(out), "--against", "2025"]) == 0
    with (out / "published.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["ours"]]
    assert {(row["agent"], row["measure"], row["published"]) for row in rows} == {
        ("all", "p_human", "0.72"),
        ("all", "p_machine", "0.83"),
    }
    assert all("without OFA, ClipCap" in row["why"] for row in rows)
    result = json.loads((out / "scores.json").read_bytes())
    assert len(result["published"]) > 80
    [people, *agents] = result["captions"]["agents"]
    assert (people["captions"], people["bleu"]) == (60, None)
    assert [row["of"] for row in agents] == ["published:blip", "published:git", "published:microsoft_api"]
    assert all(row["agents"] == 3 for row in result["captions"]["correlations"])
    assert len((out / "captions.csv").read_text().splitlines()) == 5
