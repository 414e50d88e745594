"""Statistics of answers (2025 paper, Table S5), how consistent they are, and captions by BLEU and CIDEr-D beside
detectability (Fig. 8)."""

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.contract import is_installed
from agents.sentence_boundaries import sentences
from agents.stimuli import TASKS
from agents.word_boundaries import words
from judging.statistics.measures import ALL, Score
from judging.statistics.tables import Table
from judging.statistics.verdict_table import PEOPLE, JudgedAnswers
from serving.runs.answer_numbers import WORD_OF, cliffs_delta, cohens_d, numbers, rounding, texts

CAPTIONS = "image_captioning"
WITH_SENTENCES = (CAPTIONS, "conversation")
PARTS_OF_SPEECH = {  # by how their tags of the Penn Treebank begin
    "determiners": "DT",
    "adjectives": "JJ",
    "nouns": "NN",
    "adverbs": "RB",
    "verbs": "VB",
    "prepositions": "IN",
}
LEAST_AGENTS = 3
KAPPA = "consistency (Fleiss' kappa)"
LONGEST_GRAM = 4  # of n-grams
SIGMA = 6.0
Words = Sequence[str]
Grams = Counter[tuple[str, ...]]
CaptionWithReferences = tuple[Words, Sequence[Words]]  # a caption, its references


@dataclass(frozen=True, slots=True)
class Statistic:
    """A feature of the answers of people or of an agent, in the feature's units: letters, words, pixels, or none.

    ``d``, ``delta`` and ``direction`` stand beside people's answers: None in people's own row, and without people."""

    task: str
    """The task that was answered."""
    statistic: str
    """The feature's name, such as "words" or "share of red"."""
    of: str
    """Whose answers: "people", or the agent's name."""
    number: int
    """How many answers have the feature; in a conversation how many messages, for the consistency how many stimuli."""
    mean: float
    """Their mean; for the consistency it is Fleiss' kappa."""
    sd: float | None
    """Their standard deviation, with n - 1; None for a single answer, and for the consistency."""
    d: float | None = None
    """Cohen's d: by how many pooled standard deviations the agent's mean is above people's; None if none varies."""
    delta: float | None = None
    """Cliff's delta, from -1 (always less than people) to 1 (always more)."""
    direction: str | None = None
    """In words: "more" or "less"; "as people" where the means differ by rounding alone."""


@dataclass(slots=True)
class CaptionScore:
    """BLEU-4 and CIDEr-D of the captions of people or of an agent; None without references.

    The figures ``…_one_left_out`` take people's other captions as references, so that people and agents have as
    many."""

    of: str
    """Whose answers: "people", or the agent's name."""
    captions: int
    """How many captions; of an agent those on whose pictures people wrote, too."""
    bleu: float | None = None
    """BLEU-4 of all captions together, 0 to 100; None for people, whose captions are the references."""
    cider_d: float | None = None
    """The captions' mean CIDEr-D, 0 to 10; None for people."""
    bleu_one_left_out: float | None = None
    """BLEU-4, each caption beside its picture's references without one; for people without itself."""
    cider_d_one_left_out: float | None = None
    """The mean CIDEr-D by the same references."""
    why: str | None = None
    """Why there is no BLEU-4 although there are references; None where there is one."""


@dataclass(slots=True)
class Correlation:
    """How a measure of captions goes with detectability by a judge, over agents; what cannot be computed is None."""

    judge: str
    """By whom agents were told from people."""
    measure: str
    """A field of :class:`CaptionScore`: "bleu" or "cider_d"."""
    agents: int
    """How many agents have both figures."""
    pearson: float | None = None
    """Pearson's coefficient, -1 to 1."""
    pearson_p: float | None = None
    """Its two-sided p; None where all agents lie on one line."""
    spearman: float | None = None
    """Spearman's coefficient of ranks, -1 to 1."""
    spearman_p: float | None = None
    """Its two-sided p; None where the ranks are the same, or reversed."""
    why: str | None = None
    """Why a figure is missing; None where none is."""


@dataclass(slots=True)
class CaptionMeasures:
    """Captions by standard measures, and how these go with detectability."""

    note: str
    """A sentence on how many references there are."""
    agents: Table[CaptionScore]
    """People first, if they wrote captions, then each agent."""
    correlations: Table[Correlation]
    """Two rows for each judge, by BLEU-4 and by CIDEr-D."""


def answer_statistics(answers: JudgedAnswers) -> Table[Statistic]:
    """The statistics by task, of people, then of each agent; a message of several excerpts counts once. The last
    rows of colours and words are the :func:`consistency` of ``number`` stimuli (2025 paper, L1147)."""
    rows = []
    for task in TASKS:
        values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        words: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for answer in longest_excerpts([answer for answer in answers if answer["asked"] == task]):
            group = PEOPLE if answer["truth"] == "human" else answer["agent"]
            for name, value in numbers(task, answer["answer"], answer["speaker"]):
                values[name][group].append(value)
            if task in WITH_SENTENCES:
                for text in texts(answer["answer"], answer["speaker"]):
                    for name, number in parts_of_speech(text).items():
                        values[name][group].append(number)
            if task in WORD_OF:
                words[group][answer["stimulus"]] += texts(answer["answer"])
        for name, by in values.items():
            people = np.array(by.get(PEOPLE, []))
            for group in sorted(by, key=lambda label: (label != PEOPLE, label)):
                sample = np.array(by[group])
                sd = float(sample.std(ddof=1)) if len(sample) > 1 else None
                effects = _effects(sample, people) if group != PEOPLE and len(people) else ()
                rows.append(Statistic(task, name, group, len(sample), float(sample.mean()), sd, *effects))
        for group in sorted(words, key=lambda label: (label != PEOPLE, label)):
            repeated = [answered for answered in words[group].values() if len(answered) > 1]
            if (kappa := consistency(repeated)) is not None:
                rows.append(Statistic(task, KAPPA, group, len(repeated), kappa, None))
    return Table(rows)


def parts_of_speech(text: str) -> dict[str, int]:
    """How many words are determiners, adjectives, nouns and so on, by Pattern's tagger (De Smedt and Daelemans 2012);
    none without the package textblob."""
    if (tagged := _tagger()) is None:
        return {}
    tags = Counter(tag[:2] for _, tag in tagged(text))
    return {name: tags[tag] for name, tag in PARTS_OF_SPEECH.items()}


@cache
def _tagger() -> Callable[[str], Sequence[tuple[str, str]]] | None:
    if not is_installed("textblob"):
        return None
    from nltk.tokenize import TreebankWordTokenizer
    from textblob.en import tag

    with warnings.catch_warnings():  # it leaves its lexicon's files, which it reads now, open
        warnings.simplefilter("ignore", ResourceWarning)
        tag("words")
    split = TreebankWordTokenizer().tokenize
    return lambda text: tag(" ".join(word for part in sentences(text) for word in split(part)), tokenize=False)


def consistency(answered: Sequence[Sequence[str]]) -> float | None:
    """Fleiss' kappa (1971) of the answers to each stimulus, two at least; None where all answers are the same.

    Fleiss defined it for equal numbers of answers. Where they differ each stimulus counts once in the observed
    agreement: it is the mean of the stimuli's shares of equal pairs. Each answer counts once in the agreement that is
    expected by chance, which comes from the shares of all answers together. irrCAC (after Gwet 2014) takes the mean of
    each stimulus's shares for the latter, with stimuli of a single answer among them: 0.1318 here may be 0.1248 there.
    With equal numbers both are the same."""
    counts = [Counter(answers) for answers in answered]
    pooled = Counter(chain.from_iterable(answered))
    chance = sum((number / pooled.total()) ** 2 for number in pooled.values())
    if len(pooled) < 2:
        return None
    pairs = [
        sum(n * (n - 1) for n in counted.values()) / (counted.total() * (counted.total() - 1)) for counted in counts
    ]
    return float((np.mean(pairs) - chance) / (1 - chance))


def _effects(agent: NDArray[np.float64], people: NDArray[np.float64]) -> tuple[float | None, float, str]:
    difference = float(agent.mean() - people.mean())
    is_other = abs(difference) > rounding(agent, people)
    direction = ("more" if difference > 0 else "less") if is_other else "as people"
    return cohens_d(agent, people), cliffs_delta(agent, people), direction


def longest_excerpts(answers: JudgedAnswers) -> JudgedAnswers:
    """Without excerpts of conversations that a longer one holds."""
    excerpts_by_speaker: dict[tuple[Any, ...], list[Sequence[Any]]] = defaultdict(list)
    longest = []
    for answer in sorted(answers, key=lambda candidate: -len(candidate["answer"].get("messages") or ())):
        if (messages := answer["answer"].get("messages")) is not None:
            longer = excerpts_by_speaker[answer["stimulus"], answer["agent"], answer["speaker"]]
            if any(other[: len(messages)] == messages for other in longer):
                continue
            longer.append(messages)
        longest.append(answer)
    return longest


def caption_measures(answers: JudgedAnswers, scores: Iterable[Score]) -> CaptionMeasures | None:
    """The measures, and their correlation with detectability by judge."""
    written: dict[str, dict[str, list[Words]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        if answer["asked"] == CAPTIONS:
            whose = PEOPLE if answer["truth"] == "human" else answer["agent"]
            written[whose][answer["stimulus"]].append(plain_words(answer["answer"]["text"]))
    if not written:
        return None
    references = written.pop(PEOPLE, {})
    cider = CiderD(references.values())
    rows: list[CaptionScore] = []
    if references:
        left_out = [pair for captions in references.values() for pair in _each_beside_the_others(captions)]
        number = sum(map(len, references.values()))
        rows.append(CaptionScore(PEOPLE, number, None, None, *_measured(left_out, cider), _why_no_bleu(left_out)))
    for whose, captions in sorted(written.items()):
        pairs = [
            (words, references[on]) for on, of_picture in captions.items() if on in references for words in of_picture
        ]
        left_out = [(words, others) for words, all_of in pairs for _, others in _each_beside_the_others(all_of)]
        figures = (*_measured(pairs, cider), *_measured(left_out, cider))
        rows.append(CaptionScore(whose, len(pairs), *figures, _why_no_bleu(pairs)))
    note = _note([len(captions) for captions in references.values()])
    return CaptionMeasures(note, Table(rows), Table(_correlations(rows, [*scores])))


def plain_words(text: str) -> Words:
    """A caption's words in small letters, without punctuation but for apostrophes and hyphens inside a word, and for
    points and commas inside a number."""
    return words(text)


def bleu(pairs: Sequence[CaptionWithReferences]) -> float | None:
    """BLEU-4 of a corpus, 0 to 100. None where no caption has four words. There is no 4-gram then that could be
    in a reference. Programs say 0 (sacrebleu), 3 (pycocoevalcap) or 1e-75 (nltk) even of captions that are equal."""
    from sacrebleu.metrics.bleu import BLEU

    if all(len(words) < LONGEST_GRAM for words, _ in pairs):
        return None
    captions = [" ".join(words) for words, _ in pairs]
    references = [[" ".join(reference) for reference in of_caption] for _, of_caption in pairs]
    streams = [list(stream) for stream in zip_longest(*references)]  # None: has no such reference
    return float(BLEU(tokenize="none", force=True).corpus_score(captions, streams).score)  # words are parted already


class CiderD:
    """CIDEr-D (Vedantam, Zitnick and Parikh 2015, section 5), 0 to 10, of words that are not stemmed, with lengths in
    words (COCO's program takes bigrams). ``references`` are people's captions of each picture."""

    def __init__(self, references: Iterable[Sequence[Words]]) -> None:
        pictures = 0
        self._pictures_with = Grams()
        for captions in references:
            pictures += 1
            of_lengths = [grams for words in captions for grams in ngrams(words)]
            self._pictures_with.update(set(chain.from_iterable(of_lengths)))
        self._log_pictures = math.log(pictures) if pictures else 0.0

    def score(self, words: Words, references: Sequence[Words]) -> float:
        """How like a caption is to the ``references`` of its picture, 0 to 10: the mean over them and over 1- to
        4-grams."""
        caption = [self._weighted(grams) for grams in ngrams(words)]
        total = 0.0
        for reference in references:
            near = math.exp(-((len(words) - len(reference)) ** 2) / (2 * SIGMA**2))
            others = [self._weighted(grams) for grams in ngrams(reference)]
            total += near * sum(_clipped_cosine(first, second) for first, second in zip(caption, others, strict=True))
        return 10 * total / (LONGEST_GRAM * len(references))

    def _weighted(self, grams: Grams) -> dict[tuple[str, ...], float]:
        log = self._log_pictures
        number = self._pictures_with
        return {gram: times * (log - math.log(max(1, number[gram]))) for gram, times in grams.items()}


def ngrams(words: Words) -> list[Grams]:
    """How often each sequence of 1, 2, 3 and 4 words stands in a text."""
    return [Counter(zip(*(words[start:] for start in range(n)), strict=False)) for n in range(1, LONGEST_GRAM + 1)]


def _clipped_cosine(first: Mapping[tuple[str, ...], float], second: Mapping[tuple[str, ...], float]) -> float:
    lengths = math.hypot(*first.values()) * math.hypot(*second.values())
    shared = [gram for gram in first if gram in second]  # in the text's order: sums round alike in every process
    product = sum(min(first[gram], second[gram]) * second[gram] for gram in shared)
    return product / lengths if lengths else 0.0


def _each_beside_the_others(captions: Sequence[Words]) -> list[CaptionWithReferences]:
    if len(captions) < 2:
        return []
    return [(words, [*captions[:place], *captions[place + 1 :]]) for place, words in enumerate(captions)]


def _measured(pairs: Sequence[CaptionWithReferences], cider: CiderD) -> tuple[float | None, float | None]:
    if not pairs:
        return None, None
    return bleu(pairs), float(np.mean([cider.score(words, references) for words, references in pairs]))


def _why_no_bleu(pairs: Sequence[CaptionWithReferences]) -> str | None:
    if pairs and all(len(words) < LONGEST_GRAM for words, _ in pairs):
        return f"no BLEU-4: every caption has fewer than {LONGEST_GRAM} words"
    return None


def _note(numbers: Sequence[int]) -> str:
    if not numbers:
        return "No person's caption is among the trials, so that captions cannot be measured."
    return (
        f"References: {sum(numbers):,} captions by people of {len(numbers):,} pictures, {min(numbers)} to "
        f"{max(numbers)} of each. COCO has 5; with fewer both measures are lower, and less certain. People's own "
        "captions are measured where a picture has two, and of a single picture CIDEr-D is 0."
    )


def _correlations(rows: Sequence[CaptionScore], scores: Sequence[Score]) -> list[Correlation]:
    correlations = []
    of_captions = [score for score in scores if score.task == CAPTIONS and score.agent != ALL]
    for judge in dict.fromkeys(score.judge for score in of_captions):
        detectability = {score.agent: score.detectability.value for score in of_captions if score.judge == judge}
        for measure in ("bleu", "cider_d"):
            both = [(getattr(row, measure), detectability.get(row.of)) for row in rows]
            points = np.array([pair for pair in both if None not in pair], dtype=float).reshape(-1, 2)
            points = points[~np.isnan(points).any(axis=1)]
            correlations.append(_correlated(points, Correlation(judge, measure, len(points))))
    return correlations


def _correlated(points: NDArray[np.float64], row: Correlation) -> Correlation:
    from scipy.stats import pearsonr, spearmanr

    if len(points) < LEAST_AGENTS:
        row.why = f"no test: it needs {LEAST_AGENTS} agents"
        return row
    points = np.column_stack([np.round(column / (rounding(column) or 1)) for column in points.T])  # ties are ties
    if not np.ptp(points, axis=0).all():
        row.why = "no test: all agents have the same value"
        return row
    pearson = pearsonr(*points.T)
    spearman = spearmanr(*points.T)
    row.pearson = float(pearson.statistic)
    row.spearman = float(spearman.statistic)
    row.pearson_p = float(pearson.pvalue)
    row.spearman_p = float(spearman.pvalue)
    for name, value in (("pearson_p", row.pearson), ("spearman_p", row.spearman)):
        if 1 - abs(value) <= rounding(np.ones(1)):
            setattr(row, name, None)
            row.why = "no test: the agents lie on one line, so that nothing is left to vary"
    return row
