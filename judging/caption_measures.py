"""Standard measures of captions beside detectability: BLEU and CIDEr-D, with people's captions as references.

Captions are compared in small letters and without punctuation, as in the evaluation program of COCO. People's own
captions are measured beside the others of the same picture, which is the most that can be asked of an agent. They have
a reference less than an agent's captions, and BLEU rises with the number of references, so that agents are measured in
both ways: beside all references, and beside all but one, each being left out once.

The 2025 paper (Fig. 8) finds no correlation of these with how well people tell the captions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.answer_numbers import rounding
from judging.cider import CiderD, Words
from judging.measures import ALL
from judging.verdicts import PEOPLE, Answers

TASK = "image_captioning"
MEASURES = ("bleu", "cider_d")
ONE_LEFT_OUT = ("bleu_one_left_out", "cider_d_one_left_out")
USUAL = 5  # people's captions of a picture in COCO
LEAST_AGENTS = 3
Pair = tuple[Words, Sequence[Words]]  # a caption, its references


def caption_measures(answers: Answers, scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The measures by agent, and their correlation with detectability; empty where there are no captions.

    ``answers`` are those of :func:`judging.verdicts.read_answers`, ``scores`` rows of
    :func:`judging.measures.summarize` with ``asked`` and ``judge``. ``note`` says how many references there are.
    ``agents`` has a row for people, who have ``_one_left_out`` alone, and for each agent: ``captions`` of pictures that
    people wrote of; BLEU-4 of the corpus, 0 to 100, by sacrebleu; the mean CIDEr-D, 0 to 10. None where there are too
    few references. ``correlations`` has Pearson's and Spearman's with p, by judge and measure, over ``agents`` agents;
    where there is none, or no p, ``why`` says so.
    """
    written: dict[str, dict[str, list[Words]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        if answer["asked"] == TASK:
            of = PEOPLE if answer["truth"] == "human" else answer["agent"]
            written[of][answer["stimulus"]].append(plain_words(answer["answer"]["text"]))
    if not written:
        return {}
    references = written.pop(PEOPLE, {})
    cider = CiderD(references.values())
    agents: list[dict[str, Any]] = []
    if references:
        number = sum(map(len, references.values()))
        left_out = [pair for captions_of in references.values() for pair in _each_beside_the_others(captions_of)]
        row = {"of": PEOPLE, "captions": number, **dict.fromkeys(MEASURES)}
        agents.append(row | _measured(left_out, ONE_LEFT_OUT, cider))
    for of, captions in sorted(written.items()):
        pairs = [
            (words, references[on]) for on, captions_of in captions.items() if on in references for words in captions_of
        ]
        left_out = [
            (words, others) for words, captions_of in pairs for _, others in _each_beside_the_others(captions_of)
        ]
        measured = _measured(pairs, MEASURES, cider) | _measured(left_out, ONE_LEFT_OUT, cider)
        agents.append({"of": of, "captions": len(pairs), **measured})
    return {
        "note": _note([len(captions_of) for captions_of in references.values()]),
        "agents": agents,
        "correlations": _correlations(agents, scores),
    }


def plain_words(text: str) -> Words:
    """The words of a caption in small letters, without punctuation but for apostrophes and hyphens inside a word."""
    return re.findall(r"\w+(?:['’-]\w+)*", text.lower())


def bleu(pairs: Sequence[Pair]) -> float:
    """BLEU-4 of a corpus, 0 to 100."""
    from sacrebleu.metrics.bleu import BLEU

    captions = [" ".join(words) for words, _ in pairs]
    streams = zip_longest(
        *([" ".join(reference) for reference in references] for _, references in pairs)
    )  # None: has no such reference
    metric = BLEU(tokenize="none", force=True)  # words are told apart already
    return float(metric.corpus_score(captions, [list(stream) for stream in streams]).score)


def _each_beside_the_others(captions: Sequence[Words]) -> Iterator[Pair]:
    if len(captions) > 1:
        for at, words in enumerate(captions):
            yield words, [*captions[:at], *captions[at + 1 :]]


def _measured(pairs: Sequence[Pair], names: Sequence[str], cider: CiderD) -> dict[str, float | None]:
    if not pairs:
        return dict.fromkeys(names)
    values = (bleu(pairs), float(np.mean([cider.score(words, references) for words, references in pairs])))
    return dict(zip(names, values, strict=True))


def _note(numbers: Sequence[int]) -> str:
    if not numbers:
        return "No person's caption is among the trials, so that captions cannot be measured."
    note = f"References: {sum(numbers):,} captions by people of {len(numbers):,} pictures, {min(numbers)} to "
    note += f"{max(numbers)} of each."
    if min(numbers) < USUAL:
        note += f" COCO has {USUAL} of each picture; with fewer both measures are lower, and less certain."
    if len(numbers) == 1:
        note += " Of a single picture CIDEr-D is 0: no words set it apart from others."
    if max(numbers) == 1:
        note += " No picture has two, so that people's own captions cannot be measured."
    return note


def _correlations(agents: Sequence[Mapping[str, Any]], scores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    task_scores = [row for row in scores if row["asked"] == TASK and row["agent"] != ALL]
    for judge in dict.fromkeys(row["judge"] for row in task_scores):
        of = {row["agent"]: row["detectability"] for row in task_scores if row["judge"] == judge}
        for name in MEASURES:
            points = np.array(
                [(row[name], of[row["of"]]) for row in agents if row[name] is not None and row["of"] in of], dtype=float
            ).reshape(-1, 2)
            points = points[~np.isnan(points).any(axis=1)]
            row = {"judge": judge, "measure": name, "agents": len(points)}
            rows.append(row | _correlated(points))
    return rows


def _correlated(points: NDArray[np.float64]) -> dict[str, Any]:
    """``pearson`` and ``spearman`` of the two columns of ``points``, ``_p`` of each, and ``why`` one is None."""
    from scipy.stats import pearsonr, spearmanr

    row: dict[str, Any] = dict.fromkeys(("pearson", "pearson_p", "spearman", "spearman_p", "why"))
    if len(points) < LEAST_AGENTS:
        return row | {"why": f"no test: it needs {LEAST_AGENTS} agents"}
    points = np.column_stack([np.round(column / (rounding(column) or 1)) for column in points.T])  # ties are ties
    if not np.ptp(points, axis=0).all():
        return row | {"why": "no test: all agents have the same value"}
    for which, test in (("pearson", pearsonr), ("spearman", spearmanr)):
        result = test(*points.T)
        row[which] = float(result.statistic)
        if 1 - abs(row[which]) > rounding(np.ones(1)):
            row[f"{which}_p"] = float(result.pvalue)
        else:
            row["why"] = "no test: the agents lie on one line, so that nothing is left to vary"
    return row
