"""Studies on trial sets with versions: a judge sees a stimulus in one version, and versions are equally frequent."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.errors import InputError
from judging import trials as draw_trials
from judging.study.design.settings import JudgesSettings, read_settings
from judging.study.kinds import material_of
from judging.study.pages.pool import TrialPool
from judging.study.results.status import read_status
from tests.helpers import study_folders
from tests.judging.trial_sets.test_trials import runs
from tests.judging.trial_sets.test_versions_of_trials import captions


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    texts = [f"A {at} by a tree." for at in range(60)]
    draw_trials(captions(folder, texts, [text.upper() for text in texts]), folder / "T", without="case,length", seed=1)
    return folder / "T"


def pool_of(folder: Path, trials: Path, task: str, **changes: Any) -> TrialPool:
    settings = read_settings(study_folders.write_study(folder / "study", trials, task, **changes))
    assert isinstance(settings, JudgesSettings)
    return TrialPool(trials, settings)


def test_a_judge_meets_a_stimulus_once_and_each_version_equally(drawn: Path, tmp_path: Path) -> None:
    pool = pool_of(tmp_path, drawn, "image_captioning", number=24, practice=2, sample=True, feedback=8, repeats=0.25)
    assert pool.problems() == []
    assert pool.versions == ["", "case", "case+length", "length"]
    assert pool.numbers() == "60 of alpha, 60 of people"
    seen: Counter[tuple[str, ...]] = Counter()
    over_judges: Counter[tuple[str, str]] = Counter()
    for judge in range(40):
        turns, examples = pool.draw(seen, random.Random(judge))
        firsts = [turn for turn in turns if not turn.again]
        assert len({turn.page.stimulus for turn in firsts} | {page.stimulus for page in examples}) == 24 + 2 + 2
        assert {turn.page.version for turn in turns if turn.phase == "practice"} == {""}
        assert {page.version for page in examples} == {""}
        counted = [turn for turn in firsts if turn.phase != "practice"]
        for cell in ("human", "alpha"):
            of_cell = Counter(turn.page.version for turn in counted if turn.page.cell == cell)
            assert of_cell.total() == 12
            if judge < 5:  # as long as every page is new
                assert set(of_cell.values()) == {3}
            over_judges.update((cell, version) for version in of_cell.elements())
        for turn in turns:
            if turn.again:
                assert turn.page in [other.page for other in firsts]
        seen.update(turn.page.trials for turn in counted)
    assert len(over_judges) == 8
    assert max(over_judges.values()) - min(over_judges.values()) <= 0.1 * 120
    assert max(seen.values()) - min(seen[page.trials] for page in pool.pages) <= 3


def test_a_page_about_both_speakers_has_no_versions(tmp_path: Path) -> None:
    draw_trials(runs(tmp_path, 8), tmp_path / "T", task="conversation", lengths=[6], every=True, without="case", seed=1)
    with pytest.raises(InputError, match="has versions of its answers"):
        pool_of(tmp_path, tmp_path / "T", "conversation", number=4, choices="four")
    one = pool_of(tmp_path / "one", tmp_path / "T", "conversation", number=4, choices="one")
    assert one.problems() == []


def test_status_counts_answers_as_they_were_drawn(drawn: Path, tmp_path: Path) -> None:
    study = study_folders.write_study(tmp_path / "study", drawn, "image_captioning", number=16)
    material = material_of(study)
    assert any("shared by 4 versions" in warning for warning in material.warnings())

    async def judge_all(served: Any) -> None:
        for _ in range(2):
            judge = await study_folders.arrived(served, "trial")
            while judge.current is not None and judge.current.kind == "trial":
                said = {"verdicts": ["human"], "rt": 2000.0, "confidence": 0.5}
                await served.answer(judge, judge.step, said)

    study_folders.run(study, judge_all)
    status = read_status(study, material_of(study))
    assert status["verdicts"]["all"] == 32
    numbers = {name: row["verdicts"] for name, row in status["agents"].items()}
    assert numbers == {"people": 4, "alpha": 4}
