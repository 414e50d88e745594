"""Judging as a Python library gives what the commands write; the notebook runs."""

import ast
import asyncio
import csv
import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import judging
from agents.errors import InputError
from judging import Study, judge, score, trials
from judging.statistics.tables import Estimate, Table
from serving import open_run
from serving.cli import main
from tests.helpers import in_process, study_folders
from tests.helpers.plain_words import PLAIN_WORDS
from tests.judging.study.test_export import judged, right

NOTEBOOK = Path(__file__).parents[2] / "examples" / "judging.ipynb"


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of words by people and two machines."""
    folder = tmp_path_factory.mktemp("words")
    chance = random.Random(0)
    speakers = [("human", "01"), ("human", "02"), ("machine", "alpha"), ("machine", "beta")]
    answers = {
        f"cue{at}": [
            {
                "response": chance.choice(PLAIN_WORDS[:20] if who == "human" else PLAIN_WORDS[10:]),
                "groundtruth": who,
                f"{who}_groundtruth": name,
            }
            for who, name in speakers
        ]
        for at in range(20)
    }
    (folder / "word.json").write_text(json.dumps(answers))
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_functions_give_what_commands_write(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_process.without_ray(monkeypatch)
    made = trials(words, tmp_path / "T", task="word", agents="published:alpha", seed=3, per_agent=20)
    capsys.readouterr()
    command = [
        "trials",
        str(words),
        "--task",
        "word",
        "--agents",
        "published:alpha",
        "--per-agent",
        "20",
        "--seed",
        "3",
    ]
    assert main([*command, "--out", str(tmp_path / "by-command" / "T")]) == 0
    printed = capsys.readouterr().out
    assert [line.replace(str(tmp_path), str(tmp_path / "by-command")) for line in made.sentences()] == (
        printed.splitlines()
    )
    for name in ("T.key.csv", "T.trials.json", "T/trials.jsonl", "T/lists.jsonl"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "by-command" / name).read_bytes(), name
    assert len(made) == 40
    assert Counter(made.to_pandas()["truth"]) == {"human": 20, "machine": 20}

    verdicts = judge(made, ["cue-length", "svm"], tmp_path / "V", settings={"svm": {"partitions": 2}})
    assert Counter(record.agent for record in verdicts) == {"cue-length": 40, "svm": 40}
    assert {len(record.raw["parts"]) for record in verdicts.of(agent="svm")} == {2}
    command = ["judge", str(made.path), "--judges", "cue-length,svm", "--set", "svm.partitions=2"]
    assert main([*command, "--out", str(tmp_path / "by-command" / "V")]) == 0
    said = [(record.agent, record.stimulus, record.answer) for record in verdicts]
    by_command = open_run(tmp_path / "by-command" / "V")
    assert said == [(record.agent, record.stimulus, record.answer) for record in by_command]

    scores = score(verdicts, by=["agent"], bounds=0.2, dprime_correction="1/2N")
    scores.write(tmp_path / "S")
    capsys.readouterr()
    command = ["score", str(tmp_path / "V"), "--by", "agent", "--bounds", "0.2", "--dprime-correction", "1/2N"]
    assert main([*command, "--out", str(tmp_path / "by-command" / "S")]) == 0
    printed = capsys.readouterr().out
    assert all(sentence in printed for sentence in scores.sentences())
    names = sorted(path.relative_to(tmp_path / "S") for path in (tmp_path / "S").rglob("*") if path.is_file())
    assert len(names) > 8
    for path in names:
        assert (tmp_path / "S" / path).read_bytes() == (tmp_path / "by-command" / "S" / path).read_bytes(), path
    with pytest.raises(InputError, match="already exists"):
        scores.write(tmp_path / "S")


def test_frames_have_the_columns_and_figures_of_the_files(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process.without_ray(monkeypatch)
    trials(words, tmp_path / "T", seed=1)
    scores = score(judge(tmp_path / "T", "cue-length", tmp_path / "V"), by="agent")
    scores.write(tmp_path / "S")
    frames = scores.to_pandas()
    for path in (tmp_path / "S").glob("*.csv"):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(frames[path.stem].columns) == list(rows[0]), path.name
        assert len(frames[path.stem]) == len(rows)
    verdicts = frames["verdicts"]
    people = verdicts[verdicts["truth"] == "human"]
    machines = verdicts[verdicts["truth"] == "machine"]
    rates = [(people["verdict"] == "human").mean(), (machines["verdict"] == "machine").mean()]
    [overall] = frames["scores"][frames["scores"]["agent"] == "all"].to_dict("records")
    assert [overall["p_human"], overall["p_machine"]] == pytest.approx(rates)
    assert overall["detectability"] == pytest.approx(sum(rates) / 2)
    result = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    tests = result["tests"]["word_association"]
    assert Counter(frames["tests"]["kind"]) == {kind: len(rows) for kind, rows in tests.items() if rows}
    assert frames["samples"].empty
    page = scores._repr_html_()
    assert page.count("<table>") == 1
    assert "cue-length" in page


def test_it_works_where_an_event_loop_runs(words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook, whose kernel has a loop of its own."""
    in_process.without_ray(monkeypatch)

    async def cell() -> int:
        made = trials(words, tmp_path / "T", seed=1)
        lines: list[str] = []
        verdicts = judge(made, "cue-length", tmp_path / "V", report=lines.append)
        assert "cue-length: 80 ok" in lines
        return len(verdicts)

    assert asyncio.run(cell()) == 80


def test_what_no_function_can_be_asked_for_is_named(words: Path, tmp_path: Path) -> None:
    for choices, message in (
        ({"task": "poem"}, "not poem"),
        ({"per_agent": 0}, "whole numbers from 1"),
        ({"catch": 2.0}, "shares from 0 to 1"),
        ({"preset": "1950"}, "a preset is one of 2022, 2025"),
        ({"lists": 3}, "per_judge or preset"),
        ({"agents": ["gamma"]}, "gamma: the runs hold no answers of theirs"),
    ):
        with pytest.raises(InputError, match=message):
            trials(words, tmp_path / "T", **choices)
    made = trials(words, tmp_path / "T", seed=1)
    with pytest.raises(InputError, match="settings are given of judges that are not asked: svm"):
        judge(made, "cue-length", tmp_path / "V", settings={"svm": {"partitions": 2}})
    with pytest.raises(InputError, match="bounds are between 0 and"):
        score(words, bounds=0.7)
    with pytest.raises(InputError, match="against is 2022 or 2025"):
        score(words, against="1950")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no attribute 'verdict'"):
        judging.verdict  # noqa: B018


def test_answers_alone_are_compared_as_populations(words: Path) -> None:
    """Two people and two machines, a word each on every cue: the rows are of each machine and measure."""
    scores = score(words)
    frame = scores.to_pandas()["populations"]
    assert set(frame["agent"]) == {"published:alpha", "published:beta"}
    assert set(frame["answers_of_people"]) == {40}
    assert scores.verdicts is None
    assert any(sentence.startswith("Word association: published:alpha") for sentence in scores.sentences())


def test_a_study_is_read_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = judged(tmp_path, [{"say": right}], "word_association", study_folders.word_trials(24), number=10)
    study = Study(folder)
    status = study.status()
    assert main(["study", "status", str(folder), "--json"]) == 0
    assert status == json.loads(capsys.readouterr().out)
    exported = study.export(tmp_path / "V")
    table = pd.read_csv(tmp_path / "V" / "verdicts.csv")
    assert exported.number == len(table) == 10
    assert (table["verdict"] == table["truth"]).all()
    assert study.status()["exports"] == []


def test_a_ranking_is_written_as_it_is_framed(tmp_path: Path) -> None:
    """The columns of files and frames are the same."""
    from judging.ranking.ranking import RankedAgent, RankedJudge, Ranking

    verdicts = pd.DataFrame([{"asked": "elsewhere", "folder": "V", "judge": "j", "judge_kind": "human", "trial": "t"}])
    verdicts = verdicts.assign(stimulus="s", truth="machine", agent="alike", verdict="human")
    estimate = Estimate(0.1, -0.2, 0.4)
    agents = Table([RankedAgent("elsewhere", "alike", 1, 1, 1, estimate, estimate, 0.0, estimate)])
    judges = Table([RankedJudge("elsewhere", "j", 1, estimate, estimate)])
    ranking = Ranking(agents, judges, {"elsewhere": {"is_converged": True}}, verdicts, ["fitted"])
    ranking.write(tmp_path / "R")
    frames = ranking.to_pandas()
    for name in ("agents", "judges", "verdicts"):
        with (tmp_path / "R" / f"{name}.csv").open(newline="") as file:
            assert list(csv.DictReader(file).fieldnames or ()) == list(frames[name].columns)
    assert frames["agents"]["humanness_high"].tolist() == [0.4]
    assert ranking.is_converged
    assert "fitted" in ranking._repr_html_()


def test_importing_judging_loads_no_package_of_its_extra() -> None:
    heavy = ("pandas", "numpy", "torch", "sklearn", "numba", "nutpie", "matplotlib")
    code = f"import sys, judging; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_page_on_python_shows_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its examples of judging, in their order; the one of ``rank`` takes minutes, and is that of test_rank."""
    in_process.without_ray(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for who, folder in (("human", "people"), ("machine", "answers")):
        rows = {
            f"cue{at}": [{"response": word, "groundtruth": who, f"{who}_groundtruth": "x"}]
            for at, word in enumerate(PLAIN_WORDS[:24])
        }
        (tmp_path / f"{folder}.json").write_text(json.dumps(rows))
        assert main(["import", f"{folder}.json", "--task", "word_association", "--out", folder]) == 0
    judged(tmp_path / "made", [{"say": right}], "word_association", study_folders.word_trials(24), number=10)
    (tmp_path / "made" / "study").rename(tmp_path / "study")
    text = (NOTEBOOK.parents[1] / "docs" / "python.md").read_text("utf-8").partition("## From answers to scores")[2]
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import rank" not in block]
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), {})
    assert (tmp_path / "scores" / "index.html").is_file()
    assert (tmp_path / "study-verdicts" / "run.json").is_file()


@pytest.mark.slow
def test_the_notebook_runs_from_answers_to_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells' code in order, as a kernel runs them; what it ends with is counted again from the verdicts."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert len(NOTEBOOK.read_bytes()) < 20_000
    monkeypatch.chdir(NOTEBOOK.parent)
    space: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(ast.parse("".join(cell["source"])), str(NOTEBOOK), "exec"), space)
    frames = space["frames"]
    assert isinstance(frames, dict)
    verdicts = frames["verdicts"]
    of_svm = verdicts[verdicts["judge"] == "svm"]
    right = (of_svm["verdict"] == of_svm["truth"]).groupby(of_svm["truth"]).mean()
    [row] = frames["scores"].query("judge == 'svm' and agent == 'minilm'").to_dict("records")
    assert row["detectability"] == pytest.approx(right.mean())
    sources = "".join("".join(cell["source"]) for cell in notebook["cells"])
    assert all(name in sources for name in ("trials(", "judge(", "score(", "rank", "Study"))
