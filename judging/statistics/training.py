"""What a trained judge's verdicts have in common because each answer trains the others' judge.

**Of what figures are.** A trained judge's detectability is that of its models as they were trained, one for each fold,
on further answers; a change between versions is that of the models of one version and of another. Verdicts of one fold
are then as independent as their stimuli, and errors need no widening (Bayle, Bayle, Janson and Mackey 2020), as long as
the models would be much the same without any one answer.

**What breaks otherwise.** A model that finds nothing goes by the chance of its training answers. Then i trains the
model that judges j, and j trains that of i, in the same way: if i is judged rightly by j's likeness, j is by that of i.
Margins of two answers then have a correlation of t_i t_j / τ, where t is an answer's weight in training, one by the
number of answers of its side, and τ is the sum of t². Of verdicts, the signs of margins, the covariance is φ(z_i)
φ(z_j) times that (Van Vleck and Middleton 1966), where Φ(z) is the share judged rightly. Without it 8 to 9 % of tests
of a classifier that finds nothing were false alarms, in simulations of ``scripts/simulate_tells.py``.

Between two versions the covariance is as much less as the margins of the same answers in both are correlated less. And
it holds of that part of margins alone that comes from the training answers' chance; the rest is what the model found.
The judge tells this part by its ``moves``, how far a margin moves when a fold is left out of training: their squares
add up to the variance of the margin over training answers, and their products in two versions to a covariance. Where
it does not tell them, whole margins are taken. Then intervals of what remains are too wide for a judge that finds
something, and those of changes may be too narrow.

**Why not the correlation of whole margins.** Two models that both find a length have margins that go together, because
both go by the length. What the training answers' chance adds to each does not. Of a radial classifier that finds
lengths, the margins with case and without it had a correlation of 0.9, and their moves one of 0.5. With that of the
margins 7 to 8 % of intervals missed the change.

**Why moves may add up to more than margins vary.** The covariance comes from how far a margin moves with single
training answers, and the jackknife adds up the squares of such moves. Where moves depend on each other, as those of a
classifier with a radial kernel on one feature do, this sum is more than the margin's variance (Efron and Stein 1981).
If it was cut to that variance, 9 to 10 % of tests of such a classifier were false alarms.

**Matched answers.** The formula takes answers for independent. In a block of matched answers the chance of one is made
up for by others: lengths of people and machines are equal in each block. Then margins that hang on them have less in
common. The covariance is a square of what blocks add up to, as their variance is. So each version's part is multiplied
by how much its variance by blocks is of that by stimuli (:mod:`judging.statistics.versions`). Without that, a
classifier by length alone seemed to find something without lengths in 0.3 % of simulated studies, where 5 % are due.
The same figure for both versions of a change, that of the change, made intervals of changes too wide by a tenth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from judging.statistics.jackknife import Floats

if TYPE_CHECKING:
    import pandas as pd

LEAST_RATE = 0.02  # of rates, whose z would else be infinite


def is_trained(verdicts: pd.DataFrame) -> bool:
    """Whether a judge's ``verdicts`` have margins, which trained judges have."""
    return "margin" in verdicts.columns and bool(verdicts["margin"].notna().all())


def coupling(margins: Floats, moves: Floats, is_machine: NDArray[np.bool_], of_agent: NDArray[np.bool_]) -> Floats:
    """What is added to the covariances [versions, versions] of a trained judge's detectabilities of an agent.

    ``margins`` [versions, answers] are above 0 where the judge says "machine"; ``moves`` [versions, answers, models]
    are how far they move with each fold of training answers, NaN where the judge does not tell. ``is_machine``
    [answers] are all machines' answers, which trained together, ``of_agent`` those of the agent. Nothing is added
    without answers of people or of the agent."""
    people = int((~is_machine).sum())
    machines = int(is_machine.sum())
    if not people or not of_agent.any():
        return np.zeros((len(margins), len(margins)))
    counts = np.where(is_machine, 0.5 / machines, 0.5 / people)
    means = np.stack([margins[:, ~is_machine].mean(axis=1), margins[:, is_machine].mean(axis=1)])
    centred = margins - np.where(is_machine, means[1][:, None], means[0][:, None])
    of_margins = (centred * counts) @ centred.T
    of_training = np.einsum("vam,wam,a->vw", moves, moves, counts, optimize=True)
    of_training = np.where(np.isnan(of_training), of_margins, of_training)
    deviations = np.sqrt(np.diag(of_margins))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(of_training / np.outer(deviations, deviations), nan=0.0, posinf=0.0, neginf=0.0)
    of_people = _slope(1 - (margins[:, ~is_machine] > 0).mean(axis=1)) / people
    of_machines = _slope((margins[:, of_agent] > 0).mean(axis=1)) / machines
    each = 0.5 * (of_people + of_machines)
    return np.asarray(np.outer(each, each) * shares / (1 / people + 1 / machines))


def _slope(rate: Floats) -> Floats:
    """φ(z) of rates Φ(z)."""
    z = ndtri(np.clip(rate, LEAST_RATE, 1 - LEAST_RATE))
    return np.asarray(np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi))
