"""Names that try to be more than names, through the commands: in figures, on a terminal, in CSV and in our own rows."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from judging.ranking import model as rank_model
from judging.ranking.model import Posterior
from judging.scores.computing import compute_scores
from judging.scores.figures import figures, who_judged
from judging.scores.svg import LONGEST_NAME, Draw, svg
from judging.statistics.answer_statistics import CaptionMeasures, CaptionScore
from judging.statistics.measures import Score
from judging.statistics.tables import Estimate, Table
from serving.cli import main

MATHS = [r"gpt$\frac$", "US$ 5 and A$ 6", "j0$x_{$", "$", "$$", r"\$\alpha\$", "a_b^c", r"\textbf{x}", "%"]
HIDDEN = ["_hidden", "_", "_nolegend_", "__child0"]
MARKUP = [
    "<b>&amp;",
    "]]>",
    "-->",
    "</svg>",
    '"quoted"',
    "[bold]",
    ":smile:",
    "\u05d0\u05d1\u05d2",
    "\U0001f600",
    "\u6771\u4eac",
]
ESCAPED = {  # what a terminal would obey, what is no XML, and what turns the direction of a line
    "esc\x1b]0;T\x07": "esc\\x1b]0;T\\x07",
    "line\nelsewhere  people": "line\\nelsewhere  people",
    "re\rturn": "re\\rturn",
    "ta\tb": "ta\\tb",
    "c1\x9b31m": "c1\\x9b31m",
    "ne\x85l": "ne\\x85l",
    "bidi\u202egpj": "bidi\\u202egpj",
    "iso\u2066late": "iso\\u2066late",
    "line\u2028separator": "line\\u2028separator",
    "non\uffffcharacter": "non\\uffffcharacter",
    "nu\x00ll": "nu\\x00ll",
}
TRAINED = "by-trained_on"
FORMULAS = ['=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(1)"]


def _texts(svg: str) -> list[str]:
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")
    ]


def _verdicts(agent: str, judge: str, value: str, first: int = 0) -> pd.DataFrame:
    """Of machine judges and people, on a person's and two machines' answers."""
    at, stimulus, whose = (part.ravel() for part in np.indices((3, 4, 3)))
    table = pd.DataFrame({"stimulus": stimulus, "trial": first + stimulus * 3 + whose, "sample": 0})
    table = table.assign(
        judge=np.array([judge, f"human:{first}", f"human:{first + 1}"])[at],
        judge_kind=np.array(["machine", "human", "human"])[at],
        agent=np.array(["human:1", agent, "other"])[whose],
        truth=np.where(whose > 0, "machine", "human"),
        verdict=np.where((stimulus + whose + at) % 3 > 0, "machine", "human"),
        asked="image_captioning",
        catch=False,
        repeat_of=None,
        beside_truth=None,
        excluded=None,
    )
    table["judge.country"] = np.where(stimulus % 2, value, "elsewhere")
    table["judge.gender"] = value
    return table


@pytest.mark.parametrize("names", [MATHS, [*HIDDEN, *MARKUP], [*ESCAPED]], ids=["maths", "markup", "escaped"])
def test_names_stand_letter_for_letter_in_every_figure(names: list[str]) -> None:
    """Or, of what is no XML, as its escape. Each figure is read by a parser of XML."""
    judging = names[:2]  # each is a figure more
    tables = [_verdicts(name, f"{judging[at % 2]}j", f"{name}v", 100 * at) for at, name in enumerate(names)]
    table = pd.concat(tables, ignore_index=True)
    captions = CaptionMeasures("", Table([CaptionScore(name, 9, 31.5, 1.5) for name in names]), Table([]))
    scores = replace(compute_scores(table, ["judge.country"]), captions=captions)
    drawn = _svgs(figures(scores, []) | who_judged(table))
    about: dict[str, Any] = {"task": "word_association", "judge": f"{names[0]}j", "column": "trained_on"}
    trained = [Score(**about, value=name, agent=name, detectability=Estimate(0.6)) for name in names]
    drawn |= _svgs(figures(replace(scores, scores=Table([]), captions=None, by=Table(trained)), []))
    seen = [ESCAPED.get(name, name) for name in names]
    judges = [ESCAPED.get(name, name) + "j" for name in judging]
    values = [ESCAPED.get(name, name) + "v" for name in names]
    expected = {
        "overview": seen + judges,
        "captions": seen + judges,
        TRAINED: [*seen, judges[0]],
        "by-judge.country": judges + values,
        "who": values,
        "image_captioning-people": seen,
    }
    for of, texts in expected.items():
        text = _plain("\n".join(_texts(drawn[of])))
        assert [part for part in texts if _plain(part) not in text] == [], of


def _svgs(drawings: Mapping[str, Draw]) -> dict[str, str]:
    return {name: svg(draw) for name, draw in drawings.items()}


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_long_name_leaves_room_for_what_is_drawn() -> None:
    table = _verdicts("a" * 3000, "j" * 3000, "v" * 3000)
    for drawing in _svgs(figures(compute_scores(table, ["judge.country"]), []) | who_judged(table)).values():
        assert max(map(len, _texts(drawing))) <= LONGEST_NAME + len(", : detectability") + 20
        width = float(re.search(r'width="([\d.]+)pt"', drawing)[1])  # type: ignore[index]
        assert width < 2000


def _imported(folder: Path, names: Sequence[str]) -> Path:
    """Verdicts of six people on a person's answers and those of machines of these names, as a table has them."""
    with (folder / "people.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["judge", "stimulus", "truth", "agent", "verdict"])
        for judge, at in np.ndindex(6, 4):
            for whose, name in enumerate(["human", *names]):
                truth = "machine" if whose else "human"
                table.writerow([f"j{judge}", f"s{at}", truth, name, "human" if (judge + at + whose) % 3 else "machine"])
    assert main(["import", str(folder / "people.csv"), "--task", "judgement", "--out", str(folder / "V")]) == 0
    return folder / "V"


def test_a_table_on_a_terminal_has_a_line_for_each_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _imported(tmp_path, list(ESCAPED))
    capsys.readouterr()
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 0
    printed = capsys.readouterr().out
    assert [character for character in printed if character != "\n" and not character.isprintable()] == []
    for escaped in ESCAPED.values():
        rows = [line for line in printed.split("\n") if line.startswith("elsewhere ") and f" {escaped} " in line]
        assert len(rows) == 1, escaped
    page = (tmp_path / "S" / "index.html").read_text()
    assert not {"\x1b", "\u202e", "\u2066"} & set(page)


def test_machines_called_as_rows_of_ours_are_told_apart(tmp_path: Path) -> None:
    ours = ["people", "all", "all agents", "human", "human:7", "elsewhere"]
    run = _imported(tmp_path, ours)
    assert main(["score", str(run), "--out", str(tmp_path / "S"), "--by", "agent"]) == 0
    with (tmp_path / "S" / "scores.csv").open(newline="") as file:
        agents = [row["agent"] for row in csv.DictReader(file)]
    assert sorted(agents) == sorted(
        ["all", "elsewhere", *(f"published:{name}" for name in ours if name != "elsewhere")]
    )


def test_the_ranking_of_names_that_are_formulas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model is replaced by one that takes no time: it is the files that are tested, and that they come back."""
    names = [*FORMULAS, "gpt$\\frac$", "people", "line\nelsewhere"]
    run = _imported(tmp_path, names)

    def fit(table: pd.DataFrame) -> Posterior:
        agents = sorted(set(table["agent"][table["truth"] == "machine"]))
        judges = sorted(set(table["judge"]))
        sizes = {"humanness": agents, "detectability": agents, "right": ["people", *agents]}
        draws = {name: np.zeros((9, len(of))) for name, of in (sizes | {"skill": judges, "criterion": judges}).items()}
        check = {"rhat": 1.0, "ess": 999.0, "draws": 999, "divergent": 0, "is_converged": True}
        return Posterior(agents, judges, draws, check)

    monkeypatch.setattr(rank_model, "fit", fit)
    assert main(["rank", str(run), "--out", str(tmp_path / "R")]) == 0
    ElementTree.parse(tmp_path / "R" / "ranking.svg")
    for file in ("agents.csv", "verdicts.csv"):
        with (tmp_path / "R" / file).open(encoding="utf-8", newline="") as table:
            rows = list(csv.DictReader(table))
        assert {f"'{name}" for name in FORMULAS} < {row["agent"] for row in rows}
        assert "published:people" in {row["agent"] for row in rows}
        assert not any(
            re.match(r"[=+@\t\r-]", cell) and not cell.lstrip("+-")[:1].isdigit()
            for row in rows
            for cell in row.values()
        )
    assert main(["rank", str(run), "--prior", str(tmp_path / "R")]) == 2
    assert "has all these verdicts already" in capsys.readouterr().err
