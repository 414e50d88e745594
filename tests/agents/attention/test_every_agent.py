"""What attention agents share: drawn numbers of fixations, targets that are pictures, settings without torch."""

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus
from tests.agents.attention import gaze_cases
from tests.agents.attention.gaze_cases import answers
from tests.helpers import device_cases


@pytest.fixture(scope="module")
def agents(tiny: Callable[..., Any]) -> Callable[..., Any]:
    """Each agent once, quick and with random weights."""
    return functools.cache(lambda name: device_cases.loaded(catalogue.get(name), tiny(name)[0], "cpu"))


def stimulus(agent: Any, image: Path, target: Path, **fields: Any) -> AttentionStimulus:
    if "free" in agent.declares.modes:
        return gaze_cases.stimulus(image, **fields)
    return gaze_cases.search(image, target=target, **fields)


@pytest.mark.parametrize("name", ["center", "gbvs", "ivsn-layer"])
def test_an_agent_draws_its_number_of_fixations_from_peoples(
    agents: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """From the draw's seed alone, up to the most there may be; the fixations are those of the longer path."""
    agent = agents(name)
    lengths = tmp_path / "lengths.txt"
    lengths.write_text("2\n4\n9\n")
    path, target = gaze_cases.files(tmp_path, [(60, 80), (40, 32)], seed=11)
    item = stimulus(agent, path, target, window=7, max_fixations=5)
    seeds = list(range(8))
    usual = [answers(agent, [item], [seed])[0]["fixations"] for seed in seeds]
    monkeypatch.setattr(agent, "settings", agent.settings.model_copy(update={"lengths": lengths}))
    drawn = [answer["fixations"] for answer in answers(agent, [item] * 8, seeds)]
    assert {len(path) for path in usual} == {5}
    assert {len(path) for path in drawn} == {2, 4, 5}
    assert drawn == [path[: len(own)] for own, path in zip(drawn, usual, strict=True)]
    assert answers(agent, [item], seeds[3:4])[0]["fixations"] == drawn[3]


@pytest.mark.parametrize("name", ["center", "random", "gbvs", "ivsn", "ivsn-layer", "eccnet", "return-fixations"])
def test_a_frame_is_the_picture_so_that_nothing_need_be_said_of_it(
    agents: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    agent = agents(name)
    for height, width in ((60, 81), (83, 40)):
        path, target = gaze_cases.files(tmp_path, [(height, width), (32, 32)], seed=3)
        [answer] = answers(agent, [stimulus(agent, path, target, window=9, max_fixations=3)], [1])
        assert answer["frame"] == [width, height]
        assert "fit" not in answer


@pytest.mark.parametrize("name", ["ivsn", "ivsn-layer", "eccnet", "return-fixations"])
def test_who_looks_for_a_picture_needs_one(agents: Callable[..., Any], tmp_path: Path, name: str) -> None:
    [path] = gaze_cases.files(tmp_path, [(60, 80)])
    with pytest.raises(AnswerError, match=f"^{name} looks for a picture: give it as target_image$") as caught:
        agents(name).prepare(gaze_cases.stimulus(path, mode="search", target_box=(0, 0, 9, 9)))
    assert caught.value.code == "no_target_image"


def test_agents_files_and_settings_need_no_torch() -> None:
    code = """
import sys
from agents import catalogue
for entry in catalogue.entries().values():
    if entry.tasks == ("attention_prediction",):
        entry.load_class().Settings()
print({"torch", "cv2"} & sys.modules.keys())
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
