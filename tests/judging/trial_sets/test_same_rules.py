"""People's words and colours pass the same rules as machines' before judges see them, and what that changes is told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import WordStimulus
from judging.trial_sets.candidates import AnswerReader
from judging.trial_sets.same_rules import SameRules
from judging.trial_sets.tells import tells
from serving.cli import main
from tests.helpers.run_folders import record, stimulus, write_run

WORD = "word_association"


def word_run(folder: Path, words: dict[str, str], agent: str = "minilm") -> Path:
    """A run in which an agent answers each cue with a word."""
    rows = [stimulus(cue, WORD, cue=cue) for cue in words]
    answers = []
    for cue, word in words.items():
        answer = {"word": word, "candidates": [word], "skipped": []}
        answers.append(record(cue, WORD, agent, answer=answer, raw=word))
    return write_run(folder, rows, {agent: answers})


def people(folder: Path, answers: list[tuple[str, str, str]], task: str = "word") -> Path:
    """People's answers, imported from a table."""
    column = "cue" if task == "word" else "image"
    lines = [f"{column},subject,response", *(f'{cue},{who},"{text}"' for who, cue, text in answers)]
    table = folder.with_suffix(".csv")
    table.write_text("\n".join(lines), encoding="utf-8")
    assert main(["import", str(table), "--task", task, "--out", str(folder)]) == 0
    return folder


PAPERS = [  # the papers' own steps, an example of each: as it was written, what judges see, and the rule
    ("animal", "Cats", "cat", None),
    ("go", "walked", "walk", None),
    ("tree", "leaves!", "leaf", None),
    ("thing", "the", "", "stop_word"),
    ("letter", "ab", "", "short"),
    ("sky", "bluee", "", "unknown"),
    ("grand", "grandiose", "", "overlap"),
    ("sea", "ocean", "ocean", None),
]


def test_both_sides_pass_the_papers_rules(tmp_path: Path) -> None:
    machine = word_run(tmp_path / "run", {cue: "moon" for cue, *_ in PAPERS})
    table = people(tmp_path / "people", [("p1", cue, text) for cue, text, *_ in PAPERS])
    rules = SameRules()
    shown = AnswerReader([machine, table], [], rules).candidates([WORD], [])
    words = {answer.stimulus.id: answer.answer.word for answer in shown if answer.truth == "human"}
    assert words == {cue: word for cue, _, word, _ in PAPERS if word}
    assert [answer.answer.word for answer in shown if answer.truth == "machine"] == ["moon"] * len(PAPERS)
    [of_people, of_machine] = rules.sentences()
    assert of_people.startswith("words by the papers' rules: 8 answers from people, 3 changed (cats to cat, ")
    assert "4 left out (the: stop_word, ab: short, bluee: unknown, grandiose: overlap)" in of_people
    assert of_machine == "words by the papers' rules: 8 answers from minilm, 0 changed, 0 left out"
    as_written = AnswerReader([machine, table], [], SameRules(as_written=True)).candidates([WORD], [])
    assert [answer.answer.word for answer in as_written if answer.truth == "human"] == [
        text.lower() for _, text, *_ in PAPERS
    ]


def test_the_rules_change_nothing_the_second_time() -> None:
    """Machines' words passed them when they were given: the same rules again must leave every one as it is."""
    from wordfreq import top_n_list

    rules = SameRules()
    for word in top_n_list("en", 3000):
        once = rules.word(word, "zzzq", "people")
        assert not once or rules.word(once, "zzzq", "machine") == once


def test_trials_say_whose_words_changed_and_keep_the_raw_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = word_run(tmp_path / "run", {"animal": "dog", "go": "way"})
    table = people(tmp_path / "people", [("p1", "animal", "Cats"), ("p1", "go", "the"), ("p2", "go", "run")])
    files = [str(machine), str(table)]
    assert main(["trials", *files, "--every", "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert ": 3 answers from people, 1 changed (cats to cat), 1 left out (the: stop_word)" in told
    assert "left out (words that the papers' rules drop): 1" in told
    about = json.loads((tmp_path / "T.trials.json").read_bytes())
    assert about["same_rules"]["by"]["word_association"]["people"] == {
        "answers": 3,
        "changed": 1,
        "left_out": 1,
    }
    rows = [json.loads(line) for line in (tmp_path / "people" / "records" / "humans.jsonl").read_text().splitlines()]
    assert [(row["answer"]["word"], row["raw"]) for row in rows] == [("Cats", "Cats"), ("the", "the"), ("run", "run")]
    assert main(["trials", *files, "--every", "--as-written", "--out", str(tmp_path / "W"), "--seed", "1"]) == 0
    shown = {json.loads(line)["answer"]["word"] for line in (tmp_path / "W" / "trials.jsonl").read_text().splitlines()}
    assert shown == {"dog", "way", "cats", "the", "run"}


def test_words_of_another_language_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = word_run(tmp_path / "run", {"animal": "dog", "go": "way"})
    table = people(tmp_path / "people", [("p1", "animal", "Vierbeiner"), ("p1", "go", "weglaufend")])
    assert main(["trials", str(machine), str(table), "--every", "--out", str(tmp_path / "T")]) in (0, 2)
    captured = capsys.readouterr()
    assert "more than half of people's words are left out. The rules are for English; as_written (--as-written)" in (
        captured.out + captured.err
    )


def test_colours_have_one_spelling_and_others_are_told(tmp_path: Path) -> None:
    rows = [stimulus(f"s{at}.png", "color_estimation", image=str(tmp_path / "run" / "a.png")) for at in range(5)]
    answers = [record(f"s{at}.png", "color_estimation") for at in range(5)]
    machine = write_run(tmp_path / "run", rows, {"mmcq": answers})
    Image.new("RGB", (4, 3)).save(tmp_path / "run" / "a.png")
    said = ["Grey", "light grey", "dunkelgrau", "teal", "Red."]
    table = people(tmp_path / "people", [("p", f"s{at}.png", color) for at, color in enumerate(said)], "color")
    rules = SameRules()
    shown = AnswerReader([machine, table], [], rules).candidates(["color_estimation"], [])
    assert [answer.answer.color for answer in shown if answer.truth == "human"] == [
        "gray",
        "gray",
        "dunkelgrau",
        "blue",
        "red",
    ]
    told = "\n".join(rules.sentences())
    assert ": 5 answers from mmcq, 0 changed, 0 left out" in told
    assert ": 5 answers from people, 4 changed (grey to gray, light grey to gray, teal to blue, red. to red)" in told
    assert "(an agent such as mmcq cannot say them): 1 from people (dunkelgrau)" in told


REPLIES = [
    "the water",
    "a dog",
    "ice cream",
    "swimming pool",
    "sea, river",
    "Moon.",
    '"fire"',
    "Sorry",
    "hot-dog stand",
]


def test_the_same_text_is_the_same_word_whoever_wrote_it(tmp_path: Path) -> None:
    """A chat model's reply is read for its word; a person's text is read alike, so that equal answers stay equal."""
    cues = {f"c{at}": text for at, text in enumerate(REPLIES)}
    replies = {}
    for cue, text in cues.items():
        shown = WordStimulus(id=cue, task="word_association", cue="thing")
        replies[cue] = word_answer(shown, text, RuleSettings()).word
    machine = word_run(tmp_path / "run", {cue: word for cue, word in replies.items() if word})
    table = people(tmp_path / "people", [("p", cue, text.replace('"', '""')) for cue, text in cues.items()])
    shown_to_judges: dict[str, dict[str, str | None]] = {"human": {}, "machine": {}}
    for answer in AnswerReader([machine, table], []).candidates([WORD], []):
        shown_to_judges[answer.truth][answer.stimulus.id] = answer.answer.word
    assert shown_to_judges["human"] == shown_to_judges["machine"]
    assert shown_to_judges["human"]["c0"] == "water"


def test_objects_and_captions_are_read_as_replies_are(tmp_path: Path) -> None:
    texts = ["a dog, a cat, the tree", "dog, cat and tree", "1. dog 2. cat 3. tree", "dog, dog, cat, tree."]
    folder = people(tmp_path / "o", [(f"p{at}", "a.png", text) for at, text in enumerate(texts)], "object")
    shown = AnswerReader([folder], []).candidates(["object_detection"], [])
    assert [answer.answer.labels for answer in shown[:2]] == [["dog", "cat", "tree"]] * 2
    assert shown[3].answer.labels == ["dog", "cat", "tree"]
    folder = people(tmp_path / "c", [("p", "a.png", '**Caption:** ""a dog""')], "caption")
    [shown_caption] = AnswerReader([folder], []).candidates(["image_captioning"], [])
    assert shown_caption.answer.text == "a dog"


def test_labels_of_a_detector_are_no_replies(tmp_path: Path) -> None:
    """Three boxes with one label stay three: this is what the detector said."""
    answer = {"labels": ["person"] * 3, "scores": [0.9, 0.8, 0.7], "boxes": [[0, 0, 1, 1]] * 3}
    rows = [stimulus("s", "object_detection", image="a.png")]
    run = write_run(tmp_path / "run", rows, {"d": [record("s", "object_detection", "d", answer=answer)]})
    Image.new("RGB", (4, 3)).save(tmp_path / "run" / "a.png")
    lines = (run / "stimuli.jsonl").read_text().replace('"a.png"', json.dumps(str(run / "a.png")))
    (run / "stimuli.jsonl").write_text(lines)
    [shown] = AnswerReader([run], []).candidates(["object_detection"], [])
    assert shown.answer.labels == ["person"] * 3


def test_every_judge_gets_the_fixations_of_the_clip(tmp_path: Path) -> None:
    """Fifteen, in the pixels in which they lie: x = 319.6 of a picture 320 wide is its last column."""
    table = tmp_path / "paths.csv"
    points = [[319.6, 239.4]] * 20
    table.write_text(f'image,subject,response\na.png,p,"{points}"\n')
    options = ["--task", "attention", "--frame", "320x240"]
    assert main(["import", str(table), *options, "--out", str(tmp_path / "run")]) == 0
    rules = SameRules()
    [shown] = AnswerReader([tmp_path / "run"], [], rules).candidates(["attention_prediction"], [])
    assert shown.answer.fixations == [(319.0, 239.0)] * 15
    assert rules.sentences() == [
        "scanpaths (judges see the first 15 fixations): 1 answer from people, "
        "1 changed (20 fixations to 15 fixations), 0 left out"
    ]


def test_catch_trials_break_the_rules(tmp_path: Path) -> None:
    """The catch agent answers with the cue itself, which no rule would let through."""
    machine = word_run(tmp_path / "run", {"animal": "animal"}, agent="catch")
    path = machine / "records" / "catch.jsonl"
    path.write_text(
        path.read_text()
        .replace('"kind":"machine"', '"kind":"control"')
        .replace('"kind": "machine"', '"kind": "control"')
    )
    [shown] = AnswerReader([machine], []).candidates([WORD], [])
    assert (shown.is_catch, shown.answer.word) == (True, "animal")


def trial(task: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {"asked": task, "answer": answer}


def test_tells_of_form_are_named() -> None:
    """Brackets on people's side alone, as an import left them, are named; what both sides have is not."""
    people_say = [trial(WORD, {"word": f"[{word}"}) for word in ["moon", "cat", "sun", "sea"] * 10]
    machines_say = [trial(WORD, {"word": word}) for word in ["moon", "cats", "sun", "sea"] * 10]
    is_machine = np.array([False] * 40 + [True] * 40)
    found = {tell["tell"]: (tell["people"], tell["machines"]) for tell in tells(people_say + machines_say, is_machine)}
    assert found == {
        "brackets or quotation marks at an end": (1.0, 0.0),
        "a plural or a verb's form": (0.0, 0.25),
    }
    both = [trial(WORD, {"word": word}) for word in ["moon", "cats"] * 40]
    assert tells(both, np.array([False, False, True, True] * 20)) == []


def test_a_chance_difference_is_rarely_named() -> None:
    """Of sets whose two sides come from one distribution, few are told a tell: three standard errors."""
    chance = np.random.default_rng(3)
    alarms = 0
    for _ in range(400):
        words = np.where(chance.random(80) < 0.3, "cats", "cat")
        trials = [trial(WORD, {"word": str(word)}) for word in words]
        alarms += bool(tells(trials, np.array([False, True] * 40)))
    assert alarms < 12
