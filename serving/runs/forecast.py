"""How long a run will take, from the answers that it has.

``generate`` asks a sample first, which :func:`serving.runs.forecast_sample.spread` takes from everywhere in the
set. So a :class:`Forecast` knows after 5 % of the answers how much work each part of the set is, in whichever order the
set stands. It has three steps:

- **Work.** Each answer's work is its part of its batch's time in the agent. Preparing counts where workers wait for it,
  and what is still unexplained is the same for each answer. Attempts that filters refused are in it.
- **What is left.** The set is cut into strata by position, one for each cluster of the sample. Where length explains
  work, a line through the strata says how much. What the line leaves unexplained is that of the stratum, drawn towards
  that of all strata as far as their differences may be chance (R. E. Fay and R. A. Herriot, Estimates of income for
  small places, 1979). The variance comes from differences of neighbouring strata, as for systematic samples (K. M.
  Wolter, Introduction to Variance Estimation, 2007, section 8.2).
- **Pace.** How long workers wait for a batch, lately: windows of the run, of which later ones weigh more. A wait does
  not depend on how long the batch then takes, so that it counts for each answer alike.

Conversations have no such waits that records tell of, and many are under way at a time. The first of them all begin at
once, and so they end at nearly the same time: from one end to the next they seem to be fast. So their pace counts from
the beginning of the first one, and the interval has room for those under way (:mod:`serving.runs.talks_pace`).

The clock is the records' own ``created``, so that a run that goes on and a run folder on disk give the same figures.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from serving.files.line_lengths import line_lengths
from serving.runs.estimates import Estimate, within
from serving.runs.forecast_sample import Numbers, clusters_of
from serving.runs.strata import drawn_together, line_through, variances_within
from serving.runs.talks_pace import TalksPace, pace_of_talks

STRATA = 64  # at most
WINDOWS = 10  # in which the pace is looked at
FADING = 0.8  # the weight of a window, of that of the next
POWER = 10.0  # of the mean that stands for the longest row of a batch
RECENT = 600.0  # seconds of which the rate is taken
MOST_BATCHES = 4096  # whose times are kept
LOOKED_AT = 512  # of them, for how busy workers are
FEWEST_BATCHES = 3  # for a forecast
BUSY = 0.2  # workers that answer less of the time wait for something else
STEADIEST = 0.08  # no duration is foretold with a smaller standard error, as a part of it
SHORT = 0.01  # seconds: the times of shorter batches are too coarse to say how many are under way at once
# A gap between answers that is longer than this was a pause of the run:
PAUSE = 60.0  # seconds, and
PAUSE_TIMES = 10.0  # times that which the next answer took


def row_lengths(path: Path) -> Numbers:
    """The length in bytes of each line of a file, newlines included."""
    return line_lengths(path).astype(np.float64)


@lru_cache(maxsize=64)
def unix_time(created: str) -> float:
    """A record's ``created`` as Unix time; 0 for an empty text. All answers of a batch have the same."""
    return datetime.fromisoformat(created).timestamp() if created else 0.0


class Forecast:
    """What is left of an agent's answers. Tell it each answer by :meth:`note`, in the order of ``created``, and ask
    :meth:`left` whenever you want."""

    def __init__(
        self,
        missing: Sequence[int] | Numbers,
        lengths: Numbers,
        *,
        batch_size: int = 1,
        workers: int | None = None,
        in_turns: bool = False,
    ) -> None:
        """``missing`` answers of each row of the set, in its order, and the rows' ``lengths``. ``workers`` answer
        batches, or single requests, at once; None: as many as it looks like. ``in_turns`` is for conversations, which
        are told by :meth:`note_talk`."""
        self._left = np.asarray(missing, np.float64).copy()
        self._lengths = lengths
        self._longest = _longest_beside(lengths, self._left > 0, batch_size)
        self._workers = workers
        self._in_turns = in_turns
        total = float(self._left.sum())
        stimuli = int(np.count_nonzero(self._left))
        of_batch = max(1, round(batch_size * stimuli / max(1.0, total)))
        self._strata = max(1, min(STRATA, clusters_of(stimuli, of_batch, workers or 1)[0]))
        before = np.cumsum(self._left) - self._left
        self._stratum = np.minimum(before * self._strata // max(1.0, total), self._strata - 1).astype(np.intp)
        # Of the answers of each stratum: their number, responding, preparing, and of their batches the mean length and
        # nearly the largest. First those of workers' first batches, which are slower, then the others.
        self._sums = np.zeros((2, 5, self._strata))
        self._timed = 0  # the answers in these sums
        self._answering = 0.0  # seconds of all batches
        self._noted = array("d")  # the arguments of each call of :meth:`note`, one after the other
        self._created = 0.0  # of the batch in hand
        self._in_batch = 0  # its answers so far
        self._warm = 0.0  # batches that began before this moment are their workers' first
        self._pauses = 0.0  # seconds
        self._batches: list[tuple[float, float, int]] = []  # when each began and ended, and the answers until then

    def note(self, position: int, created: float, preparing: float, responding: float, size: int) -> None:
        """Note an answer to the row at ``position``: when it was ``created`` (Unix time; 0 where no worker was asked),
        the seconds of its preparing, and those of the ``responding`` to its batch, in which there were ``size``."""
        self._noted.extend((position, created, preparing, responding, size))

    def note_talk(self, position: int, created: float, seconds: float) -> None:
        """Note a conversation about the row at ``position``, in place of :meth:`note`.

        It ended when it was ``created`` (Unix time; 0 where no worker was asked), and took ``seconds`` in all: waiting
        for its turns, too.
        """
        self._noted.extend((position, created, 0.0, seconds, 1))

    def left(self, now: float | None = None) -> Estimate | None:
        """The seconds from ``now`` (Unix time; None: the last answer) until all is answered. None as long as too few
        batches are answered."""
        self._take()
        if len(self._batches) < FEWEST_BATCHES:
            return None
        expected = self._left_of_talks() if self._in_turns else self._left_of_answers()
        if expected is None:
            return None
        return expected.after(0.0 if now is None else max(0.0, now - self._created))

    def _left_of_talks(self) -> Estimate:
        """The seconds from the last end until all conversations have ended."""
        talks = self.talks()
        seconds = 1 / talks.rate
        sums = self._sums.sum(axis=0)
        work, work_variance, work_freedom = self._work(
            sums, np.array([0.0, seconds * sums[0].sum() / sums[1].sum(), 0.0])
        )
        parts = [(talks.variance, float(talks.ended))]
        if work > 0 and work_freedom:
            parts.append((work_variance / work**2, work_freedom))
        expected = _within_parts(work, parts)
        assert expected.low is not None and expected.high is not None  # noqa: PT018
        return Estimate(work, expected.low * talks.rate / talks.fastest, expected.high * talks.rate / talks.slowest)

    def _left_of_answers(self) -> Estimate | None:
        """The seconds from the last answer until all is answered; None where no time lies between answers."""
        seen, busy, waiting, wait_variance, wait_freedom = self._waits()
        first, sums = self._sums.copy()
        if sums[0].sum() < first[0].sum():  # few are answered: better slow ones than none
            sums = first + sums
        sums[1] *= max(1.0, self._answering / max(1e-9, self._sums[:, 1].sum()))  # see _take
        answers, responding, preparing, *_ = sums.sum(axis=1)
        rate = self.rate()
        if not rate:
            return None
        durations = [end - begin for begin, end, _ in self._batches]
        is_busy = busy >= BUSY * (self._workers or 1) and float(np.mean(durations)) > SHORT
        seconds = (responding / answers + waiting) / seen if is_busy else 1 / rate
        weights = self._weights(seconds, responding / answers, preparing / answers)
        work, work_variance, work_freedom = self._work(sums, weights)
        if work > 0 and wait_freedom and work_freedom:
            of_wait = wait_variance / (responding / answers + waiting) ** 2
            return _within_parts(work, [(work_variance / work**2, work_freedom), (of_wait, wait_freedom)])
        return Estimate(work)

    def talks(self) -> TalksPace:
        """The pace of conversations so far; at least one was noted."""
        self._take()
        return pace_of_talks([(begin, end) for begin, end, _ in self._batches], RECENT)

    def workers(self) -> int:
        """How many workers answer, or seem to."""
        self._take()
        return self._workers or max(1, int(np.ceil(self._waits()[1] - 0.1)))

    def rate(self) -> float | None:
        """Answers in a second lately (:data:`RECENT`); None as long as too few are there."""
        self._take()
        if len(self._batches) < FEWEST_BATCHES:
            return None
        if self._in_turns:
            return self.talks().rate
        ends = np.array([end for _, end, _ in self._batches])
        first = min(int(np.searchsorted(ends, ends[-1] - RECENT)), len(ends) - 2)
        seconds = float(ends[-1] - ends[first])
        return (self._batches[-1][2] - self._batches[first][2]) / seconds if seconds > 0 else None

    def _take(self) -> None:
        """Add what was noted to the sums. Nothing here is done answer by answer: there may be thousands a second."""
        if not self._noted:
            return
        noted = np.array(self._noted).reshape(-1, 5)
        del self._noted[:]
        np.subtract.at(self._left, noted[:, 0].astype(np.intp), 1.0)
        noted = noted[noted[:, 1] > 0]
        if not len(noted):
            return
        places, created, preparing, responding, size = noted.T
        positions = places.astype(np.intp)
        # A batch has one time, and no more answers than its size: two workers may be ready at the same time.
        numbers = np.arange(len(noted))
        is_new = np.diff(created, prepend=self._created) != 0
        in_batch = (numbers - np.maximum.accumulate(np.where(is_new, numbers, -self._in_batch))) % size
        firsts = np.flatnonzero(in_batch == 0)
        batches = firsts if len(firsts) and firsts[0] == 0 else np.concatenate([[0], firsts])
        sizes = np.diff([*batches, len(noted)])
        # Whoever was asked again has the seconds of earlier batches, too.
        shortest = np.minimum.reduceat(responding, batches)
        for first, number, seconds in zip(batches.tolist(), sizes.tolist(), shortest.tolist(), strict=True):
            self._add(float(created[first]), float(preparing[first]), seconds, number, is_begun=in_batch[first] > 0)
        # Answers have the seconds of their own attempts. Those of requests that will be tried again are in no answer
        # yet, but in the seconds of their batches.
        self._answering += float(shortest[in_batch[batches] == 0].sum())
        self._in_batch = int(in_batch[-1]) + 1
        lengths = self._lengths[positions]
        columns = (
            np.ones(len(noted)),
            responding / size,
            preparing,
            np.repeat(np.add.reduceat(lengths, batches) / sizes, sizes),
            np.repeat(_nearly_longest(lengths, batches, sizes), sizes),
        )
        place = self._stratum[positions] + self._strata * (created - responding >= self._warm)
        for row, column in enumerate(columns):
            self._sums[:, row] += np.bincount(place, column, 2 * self._strata).reshape(2, -1)
        if len(self._batches) > MOST_BATCHES:
            del self._batches[: MOST_BATCHES // 2]

    def _add(self, created: float, preparing: float, responding: float, number: int, *, is_begun: bool) -> None:
        """Add a batch with ``number`` answers, or more answers to the last one, which ``is_begun``."""
        self._timed += number
        if is_begun:
            begin, end, _ = self._batches[-1]
            self._batches[-1] = (max(begin, end - responding), end, self._timed)
            return
        if not self._batches:
            self._warm = created - responding / 2  # its worker's second batch begins later
        elif (gap := created - self._created) > PAUSE + PAUSE_TIMES * (preparing + responding):
            self._pauses += gap - preparing - responding
        self._created = created
        end = created - self._pauses
        self._batches.append((end - responding, end, self._timed))

    def _waits(self) -> tuple[int, float, float, float, float]:
        """How many workers are seen; how many batches are answered at once; the seconds that a worker waited before a
        batch lately, for each answer, with their variance and its degrees of freedom (0: nothing is known of it).

        Each batch follows another of its worker. So it is looked at how long its worker had waited, which needs no
        knowledge of batches that are under way and may take long.
        """
        batches = sorted(self._batches[-LOOKED_AT:])
        if not batches:
            return 0, 0.0, 0.0, 0.0, 0.0
        free: list[float] = []  # when each worker ended its last batch, ascending
        seconds = []
        waits = []
        for begin, end, _ in batches:
            place = bisect_right(free, begin + SHORT) - 1
            if place < 0 and (self._workers is None or len(free) < self._workers):
                waits.append(0.0)
            else:
                waits.append(max(0.0, begin - free.pop(max(0, place))))
            seconds.append(end - begin)
            insort(free, end)
        windows = np.linspace(0, len(batches), min(WINDOWS, len(batches) // FEWEST_BATCHES) + 1).astype(int)
        fading = FADING ** np.arange(len(windows) - 1)[::-1]
        fading /= fading.sum()
        answering = np.add.reduceat(seconds, windows[:-1])
        waited = np.add.reduceat(waits, windows[:-1])
        busy = len(free) * float(fading @ (answering / (answering + waited).clip(1e-9)))
        number = self._batches[-1][2] - (self._batches[-LOOKED_AT - 1][2] if len(self._batches) > LOOKED_AT else 0)
        of_answers = waited / (number * np.diff(windows) / len(batches))
        waiting = float(fading @ of_answers)
        if len(fading) < 2 or not busy:
            return len(free), busy, waiting, 0.0, 0.0
        future = max(1.0, len(fading) * float(self._left.sum()) / number)
        variance = float(of_answers.var(ddof=1)) * (float(fading @ fading) + 1 / future)
        return len(free), busy, waiting, variance, len(fading) - 1.0

    def _weights(self, seconds: float, responding: float, preparing: float) -> Numbers:
        """The wall time of an answer, of a second of responding and of one of preparing. Arguments are means of an
        answer; the weights explain ``seconds`` as a whole, responding first."""
        workers = self._workers or max(1.0, float(np.ceil(responding / seconds - 0.1)))
        of_responding = min(1 / workers, seconds / responding) if responding > 0 else 0.0
        rest = max(0.0, seconds - of_responding * responding)
        of_preparing = min(1 / workers, rest / preparing) if preparing > 0 else 0.0
        return np.array([max(0.0, rest - of_preparing * preparing), of_responding, of_preparing])

    def _work(self, sums: Numbers, weights: Numbers) -> tuple[float, float, float]:
        """The work that is left, its variance, and the degrees of freedom of that (0: nothing is known of it)."""
        there = np.flatnonzero(sums[0])
        answers, responding, preparing, *lengths = sums[:, there]
        work = (weights[0] * answers + weights[1] * responding + weights[2] * preparing) / answers
        # Strata without answers count to the nearest that has some.
        nearest = np.abs(np.arange(self._strata)[:, None] - there).argmin(axis=1)
        group = nearest[self._stratum]
        left = np.bincount(group, self._left, len(there))
        # A batch takes as long as its rows together, or as its longest row: what explains more is used.
        lines = [
            (*line_through(length / answers, work, answers), length / answers, rows)
            for length, rows in zip(lengths, (self._lengths, self._longest), strict=True)
        ]
        _, slope, length, rows = min(lines, key=lambda line: line[0])
        rest = work - slope * length
        variances = variances_within(rest, answers)
        if len(variances):
            rest = drawn_together(rest, answers, variances)
        expected = float((left * rest).sum() + slope * (self._left * rows).sum())
        # Should the line cross zero, rows there take no negative time.
        expected = max(expected, float(left.sum() * work.min()))
        if not len(variances):
            return expected, 0.0, 0.0
        parts = variances * (left**2 / answers + left)
        # Stimuli of one batch share its time: where batches mix strata, these are alike.
        parts *= max(1.0, len(there) / len(self._batches))
        variance = float(parts.sum())
        freedom = variance**2 / float((parts**2).sum()) / 2 if variance else 1000.0
        return expected, variance, freedom


def _within_parts(value: float, parts: Sequence[tuple[float, float]]) -> Estimate:
    """``value`` with an interval from independent ``parts`` of the variance of its logarithm, each with its degrees of
    freedom (F. E. Satterthwaite, 1946), and from :data:`STEADIEST`."""
    variance = sum(part for part, _ in parts) + STEADIEST**2
    freedom = variance**2 / max(1e-12, sum(part**2 / freedom for part, freedom in parts))
    return within(value, variance, freedom)


def _nearly_longest(lengths: Numbers, starts: Any, sizes: Any) -> Numbers:
    """The mean of each batch's lengths by a high power. It is the longest where all are equal, and a little less where
    one is long: in a batch of many long rows it is likelier that one of them is slow for its length."""
    return np.asarray((np.add.reduceat(lengths**POWER, starts) / sizes) ** (1 / POWER))


def _longest_beside(lengths: Numbers, is_missing: np.ndarray[Any, Any], batch_size: int) -> Numbers:
    """Of each missing row the longest length in its batch, if batches are formed along the set."""
    longest = lengths.copy()
    missing = np.flatnonzero(is_missing)
    if len(missing):
        starts = np.arange(0, len(missing), batch_size)
        sizes = np.diff([*starts, len(missing)])
        longest[missing] = np.repeat(_nearly_longest(lengths[missing], starts, sizes), sizes)
    return longest
