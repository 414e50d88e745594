"""The export of a study of words with traces, as scores read it."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from judging import score
from judging.contamination.marks import read_marks
from judging.study.serving_study import ServedStudy
from serving.cli import main
from tests.helpers import in_process
from tests.helpers.plain_words import PLAIN_WORDS
from tests.helpers.study_folders import arrived, run
from tests.judging.study.test_traces import answer_all, written

PERSONS = 14
STIMULI = 6


def _sent(chance: random.Random, person: int, number: int) -> dict[str, Any]:
    """What the page sends: the first four participants paste every second word."""
    pastes = person < 4 and number % 2 == 0
    word = chance.choice(PLAIN_WORDS)
    traces: dict[str, Any] = {"inserted": [], "keys": [], "deletions": [], "hidden": [], "unfocused": []}
    traces |= {"first_key": None, "characters": len(word)}
    if pastes:
        traces["inserted"] = [{"kind": "paste", "at": 9000, "characters": len(word)}]
        traces["hidden"] = [[500, 8500]]
    else:
        traces["keys"] = [400 + 200 * at for at in range(len(word))]
        traces["first_key"] = 400
        if chance.random() < 0.1:
            traces["hidden"] = [[500, 4000]]
    return {"answer": word, "traces": traces}


def test_an_export_gives_marks_and_a_rate(tmp_path: Path) -> None:
    study = written(tmp_path, STIMULI, record=True, copied_instruction=True)
    chance = random.Random(2)

    async def work(served: ServedStudy) -> None:
        for person in range(PERSONS):
            judge = await arrived(served, "ask")
            await answer_all(served, judge, partial(_sent, chance, person))

    run(study, work)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "export")]) == 0
    answers = read_marks([tmp_path / "export"])
    assert sum(answer.marks[0] == 1 for answer in answers) == 4 * STIMULI / 2
    asked = ["generate", str(tmp_path / "set.jsonl"), "--agents", "null", "--samples", str(PERSONS), "--here"]
    assert main([*asked, "--out", str(tmp_path / "machines")]) == 0
    trials = [
        "trials",
        str(tmp_path / "machines"),
        str(tmp_path / "export"),
        "--seed",
        "1",
        "--catch",
        "0",
        "--as-written",
    ]
    assert main([*trials, "--out", str(tmp_path / "T")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        in_process.without_ray(patch)
        assert main(["judge", str(tmp_path / "T"), "--judges", "cue-length", "--out", str(tmp_path / "V")]) == 0
    [row, _] = score(tmp_path / "V", contamination=tmp_path / "export").tables.contamination
    assert (row.persons, row.answers, row.judged_without_traces) == (PERSONS, PERSONS * STIMULI, 0)
    assert row.why == ""
    assert row.rate.low < 12 / 84 < row.rate.high
    assert abs(row.p_human_corrected.value - row.p_human.value) < 0.2
