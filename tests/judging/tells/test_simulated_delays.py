"""The script that simulates delays: its truth, and what is left without delays."""

import numpy as np
import pytest
import simulate_delays as script


@pytest.mark.parametrize(("whose", "mean"), [("people", 8), ("machine", 20)])
def test_what_is_drawn_has_the_true_mean(whose: str, mean: float) -> None:
    answers = script.drawn(400, 0.0, script.SECONDS[whose], np.random.default_rng(1))
    seconds = [delay for seen in answers for delay in seen.delays() if delay is not None]
    assert len(seconds) == 400 * (script.MESSAGES - 1)
    assert np.mean(seconds) == pytest.approx(mean, rel=0.04)  # 3.5 standard errors
    assert np.std(seconds) == pytest.approx(mean / script.SHAPE**0.5, rel=0.1)


def test_without_delays_nothing_is_found() -> None:
    found = script.simulate(30, 0.0, 1)
    assert found["as drawn"] > 0.8
    assert found["without"] == 0.5
    assert abs(found["planted"] - 0.5) < 0.2
    assert abs(found["alike"] - 0.5) < 0.2
