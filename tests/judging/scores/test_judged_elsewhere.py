"""Verdicts on stimuli that are not ours, imported and scored, against counts by hand."""

import csv
import json
from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

from serving.cli import main


def test_verdicts_on_clips(tmp_path: Path) -> None:
    rows = [
        (f"w{judge}", f"clip{at}", at % 2, (at * 7 + judge) % 3 > 0, (at + judge) % 5 / 4)
        for judge in range(3)
        for at in range(30)
    ]
    words = ("human", "machine")
    lines = [
        f"{judge},{clip},{words[truth]},{'walker' if truth else ''},{words[truth if right else 1 - truth]},{sure}"
        for judge, clip, truth, right, sure in rows
    ]
    (tmp_path / "clips.csv").write_text("\n".join(["judge,stimulus,truth,agent,verdict,confidence", *lines]))
    assert main(["import", str(tmp_path / "clips.csv"), "--task", "judgement", "--out", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "scores.csv").open(newline="") as file:
        scores = {row["agent"]: row for row in csv.DictReader(file)}
    for column, truth in (("p(H|H)", 0), ("p(M|M)", 1)):
        rights = [right for _, _, of, right, _ in rows if of == truth]
        values = {scores["walker"].get(name) for name in (column, "p_human" if truth == 0 else "p_machine")} - {None}
        assert [float(str(value)) for value in values] == pytest.approx([sum(rights) / len(rights)])
    [ranking] = json.loads((tmp_path / "S" / "scores.json").read_bytes())["rankings"]
    areas = [
        roc_auc_score(
            [right for name, _, _, right, _ in rows if name == judge],
            [sure for name, _, _, _, sure in rows if name == judge],
        )
        for judge in ("w0", "w1", "w2")
    ]
    assert ranking["auc_2"] == pytest.approx(sum(areas) / 3)


def test_two_intervals_are_pairs(tmp_path: Path) -> None:
    lines = [
        f"w{judge},item{at},{'first' if at % 2 else 'second'},vae,{'first' if at % 3 else 'second'}"
        for judge in range(2)
        for at in range(12)
    ]
    (tmp_path / "walks.csv").write_text("\n".join(["subject,stimulus,truth,agent,verdict", *lines]))
    assert main(["import", str(tmp_path / "walks.csv"), "--task", "judgement", "--out", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "pass_rates.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    right = sum((at % 2 > 0) == (at % 3 > 0) for at in range(12))
    assert (row["agent"], row["pairs"], row["judges"], int(row["right"])) == ("vae", "12", "2", 2 * right)
    assert float(row["first"]) == pytest.approx(8 / 12)


def test_what_is_wrong_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clips.csv"
    path.write_text(
        "judge,stimulus,truth,verdict\nw1,a,human,second\nw1,b,,human\nw1,c,first,human\nw1,d,human,human\n"
    )
    assert main(["import", str(path), "--task", "judgement", "--out", str(tmp_path / "V")]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    for part in (
        "clips.csv:2: verdict: must be human or machine, not 'second'",
        "clips.csv:3: truth: is empty; it must be machine or human, of two intervals first or second",
        "clips.csv:4: verdict: must be first or second, not 'human'",
        "3 problems",
    ):
        assert part in printed
    assert not (tmp_path / "V").exists()
