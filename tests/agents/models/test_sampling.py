"""The chain that draws tokens: its noise, and the distribution that it draws from."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from agents.models.sampling import Finite, Sampler, Warp, gumbel, uniform

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def splitmix64(state: int) -> int:
    """The output function of the published generator, in Python's own integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def noise(seed: int, step: int, token: int) -> float:
    """What one value of the noise is defined as."""
    key = splitmix64((splitmix64(seed * GAMMA & MASK) + step * GAMMA) & MASK)
    return ((splitmix64((key + (token + 1) * GAMMA) & MASK) >> 12) + 0.5) * 2.0**-52


def test_the_reference_is_the_published_generator() -> None:
    # The first outputs of splitmix64 with state 1234567, as its author's C program prints them.
    stream = [splitmix64((1234567 + count * GAMMA) & MASK) for count in (1, 2, 3)]
    assert stream == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(st.integers(0, 2**53 - 1), st.integers(0, 10_000), st.integers(0, 300_000))
def test_noise_equals_python_integers(seed: int, step: int, token: int) -> None:
    assert float(uniform(torch.tensor(seed), step, torch.tensor(token))) == noise(seed, step, token)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (0.7, 0, 1.0), (1.3, 12, 1.0), (0.8, 0, 0.85), (0.8, 20, 0.9), (2.0, 5, 0.5)],
)
def test_draws_follow_the_softmax_of_transformers_warped_logits(temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.randn(1, 60, generator=torch.Generator().manual_seed(3)) * 2
    warped = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        warped = TopKLogitsWarper(top_k)(None, warped)
    if top_p < 1:
        warped = TopPLogitsWarper(top_p)(None, warped)
    expected = warped.softmax(1)[0]
    count = 20_000
    sampler = Sampler(range(count), [Warp(temperature, top_k, top_p)] * count)
    drawn = sampler(torch.zeros(count, 3, dtype=torch.int64), logits.expand(count, -1)).argmax(1)
    share = torch.bincount(drawn, minlength=60) / count
    assert float(share[expected == 0].sum()) == 0
    # A share p of n draws spreads by sqrt(p (1 - p) / n); of 60 shares none is further off than 4.5 of these.
    spread = (expected * (1 - expected) / count).sqrt()
    assert bool(((share - expected).abs() <= 4.5 * spread + 1e-9).all())


def test_the_noise_depends_on_the_step_and_not_on_the_prompts_length() -> None:
    logits = torch.zeros(1, 1000)
    for prompt in (40, 2):
        sampler = Sampler([5], [Warp()])
        for step in (0, 1):
            drawn = sampler(torch.zeros(1, prompt + step, dtype=torch.int64), logits).argmax()
            assert int(drawn) == int(gumbel(torch.tensor(5), step, torch.arange(1000)).argmax())


def test_penalties_count_generated_tokens_only() -> None:
    sampler = Sampler([1], [Warp(temperature=0, frequency=0.5, presence=0.25)])
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    prompt = [3, 3, 3]
    assert sampler(torch.tensor([prompt]), logits).tolist() == logits.tolist()
    later = sampler(torch.tensor([[*prompt, 2, 2, 0]]), logits)
    assert later.tolist() == [[1.0 - 0.75, 2.0, 3.0 - 1.25, 4.0]]  # without noise, as the temperature is 0


def test_ties_at_the_edges() -> None:
    logits = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    ids = torch.zeros(1, 1, dtype=torch.int64)
    of_k = Sampler([1], [Warp(top_k=2)])(ids, logits)
    assert (of_k > -torch.inf).tolist() == [[True, True, True, False]]
    of_p = Sampler([1], [Warp(top_p=0.5)])(ids, logits)  # each of the three has the mass 0.296
    assert (of_p > -torch.inf).tolist() == [[True, True, False, False]]


def test_rows_whose_logits_are_no_numbers_are_noted() -> None:
    logits = torch.randn(6, 5, generator=torch.Generator().manual_seed(2))  # three items with two beams each
    ids = torch.zeros(6, 1, dtype=torch.int64)
    for value in (torch.nan, torch.inf):
        finite = Finite(3, normalised=False)
        spoiled = logits.clone()
        spoiled[1, 2] = spoiled[4, 0] = value
        for scores in (logits, spoiled, logits):  # once bad, always bad
            assert finite(ids, scores) is scores
        assert finite.bad.tolist() == [True, False, True]
    forbidden = Finite(3, normalised=False)
    forbidden(ids[:3], torch.tensor([[0.0, -torch.inf], [0.0, 0.0], [-torch.inf, -torch.inf]]))
    assert forbidden.bad.tolist() == [False, False, True]  # an earlier rule may forbid a token, not all of them


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("place", [0, 99])
def test_a_few_columns_of_log_probabilities_show_it(value: float, place: int) -> None:
    logits = torch.randn(6, 100, generator=torch.Generator().manual_seed(3))
    logits[2, place] = value
    logits[4] = -torch.inf
    scores = logits.log_softmax(1)
    scores[:, :5] = -torch.inf  # a rule that ran before
    finite = Finite(3, normalised=True)
    finite(torch.zeros(6, 1, dtype=torch.int64), scores)
    assert finite.bad.tolist() == [False, True, True]


@pytest.mark.parametrize("spread", [0.0, 0.5, 4.0])
def test_top_p_of_a_large_vocabulary_is_that_of_sorted_probabilities(spread: float) -> None:
    """A flat distribution, whose mass is in most of the tokens, and steep ones; rounded, so that many scores tie."""
    logits = torch.randn(3, 6000, generator=torch.Generator().manual_seed(4)) * spread
    logits = (logits * 4).round() / 4
    kept = (
        Sampler([1, 2, 3], [Warp(top_p=0.9)] * 2 + [Warp()])(torch.zeros(3, 1, dtype=torch.int64), logits) > -torch.inf
    )
    for row in range(2):
        mass = logits[row].double().softmax(0).tolist()
        likeliest = sorted(range(6000), key=lambda token: (-mass[token], token))
        before = 0.0
        expected = []
        for token in likeliest:
            if before >= 0.9:
                break
            expected.append(token)
            before += mass[token]
        # Sums of thousands of probabilities differ in their last digits: by a token at the edge.
        assert abs(int(kept[row].sum()) - len(expected)) <= 1
        assert set(likeliest[: len(expected) - 1]) <= set(kept[row].nonzero().flatten().tolist())
    assert bool(kept[2].all())
