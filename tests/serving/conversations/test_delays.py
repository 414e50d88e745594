"""The delay before a message: its distribution is the stated one, and it comes from the conversation's seed alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from agents.answers import TurnAnswer
from agents.language.filters.policies import THRESHOLDS, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.delays import DelaySettings
from serving.conversations.transcript import Transcript, no_instructions

DRAWS = 4000
WITHOUT = {"base": 0.0, "type_mean": 0.0, "type_sd": 0.0, "read_mean": 0.0, "read_sd": 0.0, "think_scale": 0.0}


def drawn(settings: DelaySettings, written: int, read: int) -> list[float]:
    numbers = random.Random(5)
    return [settings.draw(written, read, numbers) for _ in range(DRAWS)]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type_mean": 0.3, "type_sd": 0.03}, stats.norm(40 * 0.3, 40 * 0.03)),
        ({"read_mean": 0.03, "read_sd": 0.003}, stats.norm(100 * 0.03, 100 * 0.003)),
        ({"think_shape": 2.5, "think_scale": 0.25}, stats.gamma(2.5, scale=0.25)),
    ],
)
def test_each_part_follows_its_distribution(part: dict[str, float], expected: object) -> None:
    found = drawn(DelaySettings(**{**WITHOUT, **part}), 40, 100)
    assert stats.kstest(found, expected.cdf).pvalue > 0.01  # type: ignore[attr-defined]


def test_the_whole_is_their_sum() -> None:
    found = drawn(DelaySettings(), 40, 100)
    numbers = np.random.default_rng(3)
    peer = (
        1
        + numbers.normal(0.3, 0.03, DRAWS) * 40
        + numbers.normal(0.03, 0.003, DRAWS) * 100
        + numbers.gamma(2.5, 0.25, DRAWS)
    )
    assert stats.ks_2samp(found, peer).pvalue > 0.01
    variance = (40 * 0.03) ** 2 + (100 * 0.003) ** 2 + 2.5 * 0.25**2
    assert np.mean(found) == pytest.approx(1 + 12 + 3 + 0.625, abs=4 * (variance / DRAWS) ** 0.5)
    assert np.var(found) == pytest.approx(variance, rel=0.1)


def test_a_delay_is_never_below_zero() -> None:
    assert min(drawn(DelaySettings(**{**WITHOUT, "type_sd": 1.0}), 10, 0)) == 0.0


def test_settings_that_are_no_delays_are_refused() -> None:
    for bad in ({"base": -1.0}, {"think_shape": 0.0}, {"type_sd": -0.1}, {"read_mean": float("nan")}):
        with pytest.raises(ValidationError):
            DelaySettings(**bad)


def test_a_conversation_has_the_delays_of_its_seed() -> None:
    def held(seed: int) -> list[tuple[float | None, float | None]]:
        stimulus = ConversationStimulus(id="c", task="conversation", names=("Ann", "Bob"), who_starts="A")
        nothing = (no_instructions, no_instructions)
        transcript = Transcript(stimulus, ("a", "b"), nothing, Policy(), THRESHOLDS, seed=seed)
        for turn in range(6):
            transcript.add(TurnAnswer(text="x" * (10 * turn)))
        return [(one.delay_s, one.at) for one in transcript.messages]

    assert held(1) == held(1)
    assert not {delay for delay, _ in held(1)} & {delay for delay, _ in held(2)}
    times = [at for _, at in held(1)]
    assert times == pytest.approx(np.cumsum([delay for delay, _ in held(1)]))
