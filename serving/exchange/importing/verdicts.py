"""Verdicts in people's tables: on trials that ``turinglike trials`` made, or on other stimuli with the truth beside
them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents.answers import VerdictAnswer, is_blank, plain
from agents.errors import InputError
from serving.exchange.importing.people_table import NAME_OF_TRIAL, TableRow, trial_column
from serving.exchange.importing.repeated_rows import tell_several_answers
from serving.exchange.importing.source import listed
from serving.exchange.importing.table_cells import NUMBER, CellText, is_empty, read_text, shortened, verdict_of
from serving.exchange.importing.table_columns import AGENTS, TRIALS
from serving.exchange.importing.table_reader import TableReader
from serving.files.words import shown
from serving.runs.records import UNKNOWN

TRUTHS = ("truth", "groundtruth")
CHOICES = (("machine", "human"), ("first", "second"))  # the words of a verdict on one answer, and on two
WORDS_SHOWN = 8  # more different words that are no verdicts are not named in one message


def add_verdicts(reader: TableReader) -> None:
    """Add the verdicts of a table to ``reader.source``. Raises InputError; faults of single cells go to
    ``reader.problems``."""
    columns = reader.columns
    has_truth = "truth" in columns.given or bool(columns.named(TRUTHS))
    if "truth" in columns.given or (has_truth and reader.table.screens is None):
        reader.source.form = "judgements"
        _add_foreign(reader)
    else:
        _add_on_trials(reader)


def _add_on_trials(reader: TableReader) -> None:
    """Verdicts on trials of ours: a row names a trial, and has a ``verdict`` or a response with a meaning."""
    source = reader.source
    screens = reader.table.screens
    reader.name_stimuli(trial_column(reader.table, TRIALS if screens is None else screens.trials))
    columns = reader.columns
    verdict = columns.find("verdict", ("verdict",))
    response = columns.find("response", ("response",))
    if verdict is None and response is None:
        response = reader.response_column()
    judged: list[tuple[TableRow, str, dict[str, Any]]] = []
    wrong: list[_WrongWord] = []
    are_ids = any(NAME_OF_TRIAL.fullmatch(reader.stimulus(row)) for row in reader.table.rows)
    for row in reader.table.rows:
        trial = reader.stimulus(row)
        if are_ids and not NAME_OF_TRIAL.fullmatch(trial):
            trial = ""  # a screen beside the trials, such as instructions
        column, text = _verdict_cell(reader, row, verdict, response)
        if not trial:
            reader.leave_out(row, None)
        elif text.state == "missing":
            reader.leave_out(row, text)
        elif text.state == "wrong":
            reader.fault(row, column, text.fault)
        elif (answer := _answer(text.text, reader)) is None:
            wrong.append(_WrongWord(row, column, text.text))
        else:
            judged.append((row, trial, answer))
    _tell_wrong_words(reader, wrong, CHOICES[0], is_all=not judged)
    no_trial = "rows_without_a_stimulus" if screens is None else "screens_that_name_no_trial"
    no_answer = "rows_without_an_answer" if screens is None else "trials_without_a_response"
    reader.tell_left_out(response or verdict or "", no_trial, no_answer)
    if not judged and not reader.problems:
        reader.refuse_nothing()
    reader.name_people([row for row, *_ in judged])
    reader.drop_equal_rows()
    row_ids = {id(row) for row in reader.table.rows}
    judged = [(row, trial, answer) for row, trial, answer in judged if id(row) in row_ids]
    confidences = _confidences(reader, [row for row, *_ in judged])
    times = reader.times([row for row, *_ in judged])
    for place, (row, trial, answer) in enumerate(judged):
        if place in confidences:
            answer = {**answer, "confidence": confidences[place]}
        written = row.cells.get(response or verdict or "", "").strip()
        raw: Any = written
        if screens is not None or times[place] is not None:
            raw = {"response": written, "rt": times[place]}
        source.add(trial, reader.person(row), raw, answer, meta=reader.about(row))
    tell_several_answers(source, reader.table, [row for row, *_ in judged], "verdict", counts_once=True)


def _verdict_cell(
    reader: TableReader, row: TableRow, verdict: str | None, response: str | None
) -> tuple[str, CellText]:
    """The column that says the verdict in a row, and its text: ``verdict`` goes before the key that was pressed."""
    text = CellText("missing")
    column = verdict or response or ""
    for column in (name for name in (verdict, response) if name is not None):
        text = read_text(row.cells.get(column, ""), has_time=False)
        if text.state != "missing":
            break
    return column, text


def _answer(text: str, reader: TableReader) -> dict[str, Any] | None:
    responses = reader.options.responses
    if responses:
        reader.source.used.add("responses")
    word = verdict_of(text, responses)
    return None if word is None else plain(VerdictAnswer.model_validate({"verdict": word}))


class _WrongWord(NamedTuple):
    row: TableRow
    column: str
    word: str


def _tell_wrong_words(
    reader: TableReader, wrong: Sequence[_WrongWord], choices: Sequence[str], *, is_all: bool
) -> None:
    """Note the words that are no verdicts. Where no verdict of a file is understood, a single sentence says what its
    words are: their meaning is what the user must give."""
    words = list(dict.fromkeys(word.word.strip().lower() for word in wrong))
    allowed = " or ".join(sorted(choices))
    has_meanings = choices == CHOICES[0]
    if is_all and 0 < len(words) <= WORDS_SHOWN and has_meanings:
        example = ",".join(f"{word}={meaning}" for word, meaning in zip(words, ("human", "machine"), strict=False))
        first = wrong[0]
        message = (
            f"must be {allowed}, or what --responses give a meaning, not {listed([repr(shortened(w)) for w in words])}"
        )
        if len(wrong) > 1:
            message += f" ({len(wrong):,} rows are so)"
        reader.fault(first.row, first.column, f"{message}; say what each means, as --responses {example}")
        return
    for wrong_word in wrong:
        means = allowed
        if has_meanings and wrong_word.column != "verdict":
            means += ", or what --responses give a meaning"
        reader.fault(wrong_word.row, wrong_word.column, f"must be {means}, not {shortened(wrong_word.word)!r}")


def _confidences(reader: TableReader, rows: Sequence[TableRow]) -> dict[int, float]:
    """Confidences from 0 to 1, by the place in ``rows``. On another scale the column is left unread, and so named."""
    column = reader.columns.given.get("confidence") or next(iter(reader.columns.named(("confidence",))), None)
    if column is None:
        return {}
    cells = [row.cells.get(column, "").strip() for row in rows]
    filled = [cell for cell in cells if not is_empty(cell)]
    if not filled or not all(NUMBER.fullmatch(cell) and 0 <= float(cell) <= 1 for cell in filled):
        if filled:
            reader.source.remarks.append(f"column {column} is not from 0 to 1, and is left out")
        return {}
    reader.columns.use(column)
    return {place: float(cell) for place, cell in enumerate(cells) if not is_empty(cell)}


# on stimuli of others


@dataclass(frozen=True, slots=True)
class _ForeignVerdict:
    """A verdict on another study's stimulus."""

    row: TableRow
    stimulus: str
    trial: str  # "" where no column tells trials apart
    agent: str  # whose answer was judged; "" where no column says it
    truth: str  # one of ``words``
    verdict: str  # one of ``words``
    words: tuple[str, str]  # of CHOICES

    @property
    def is_pair(self) -> bool:
        """Whether two intervals were judged: truth and verdict are then the machine's, first or second."""
        return self.words == CHOICES[1]

    @property
    def is_machine(self) -> bool:
        return self.truth == self.words[0]

    @property
    def who(self) -> str:
        """The agent whose answer was judged."""
        if self.agent:
            return self.agent
        return UNKNOWN if self.is_machine or self.is_pair else "human"

    @property
    def name(self) -> str:
        """The name of what was judged: two judges who saw the same have the same."""
        return " · ".join((self.stimulus, self.who, "machine" if self.is_machine else "human"))


def _add_foreign(reader: TableReader) -> None:
    """Verdicts with their truth in ``raw``. With two intervals, truth and verdict say which is the machine's, first or
    second."""
    source = reader.source
    columns = reader.columns
    stimulus = columns.find("stimulus", ("stimulus", "stimulusid", "item", "itemid", "trial", "trialid"))
    truth = columns.find("truth", TRUTHS)
    verdict = columns.find("verdict", ("verdict",)) or columns.find("response", ("response",))
    wanted = (("stimulus", stimulus), ("truth", truth), ("verdict", verdict))
    absent = [name for name, column in wanted if column is None]
    if stimulus is None or truth is None or verdict is None:
        raise InputError(f"has no column {' and no column '.join(absent)}; its columns are {columns.listed()}")
    reader.name_stimuli([stimulus])
    judged = _foreign_verdicts(reader, stimulus, truth, verdict)
    reader.name_people([judgement.row for judgement in judged])
    reader.drop_equal_rows()
    row_ids = {id(row) for row in reader.table.rows}
    judged = [judgement for judgement in judged if id(judgement.row) in row_ids]
    names = _trial_names(reader, judged)
    confidences = _confidences(reader, [judgement.row for judgement in judged])
    times = reader.times([judgement.row for judgement in judged])
    for place, (judgement, name) in enumerate(zip(judged, names, strict=True)):
        raw = {
            "stimulus": judgement.stimulus,
            "truth": "machine" if judgement.is_machine else "human",
            "verdict": judgement.verdict,
            "agent": judgement.who,
            "confidence": confidences.get(place),
            "pair": judgement.is_pair,
            "rt": times[place],
        }
        says = "machine" if judgement.verdict == judgement.words[0] else "human"
        answer = plain(VerdictAnswer.model_validate({"verdict": says, "confidence": confidences.get(place)}))
        source.add(name, reader.person(judgement.row), raw, answer, meta=reader.about(judgement.row))
    rows = [judgement.row for judgement in judged]
    tell_several_answers(source, reader.table, rows, "verdict", counts_once=True)


def _foreign_verdicts(reader: TableReader, stimulus: str, truth: str, verdict: str) -> list[_ForeignVerdict]:
    columns = reader.columns
    agents = columns.find("agent", AGENTS)
    trials = [name for name in columns.named(("trial", "trialid")) if name != stimulus]
    judged = []
    wrong: dict[tuple[str, str], list[_WrongWord]] = {pair: [] for pair in CHOICES}
    for row in reader.table.rows:
        text = read_text(row.cells.get(verdict, ""))
        if not reader.stimulus(row):
            reader.leave_out(row, None)
            continue
        if text.state == "missing":
            reader.leave_out(row, text)
            continue
        if text.state == "wrong":
            reader.fault(row, verdict, text.fault)
            continue
        truth_word = row.cells.get(truth, "").strip().lower()
        words = next((pair for pair in CHOICES if truth_word in pair), None)
        if words is None:
            said = "is empty" if is_blank(truth_word) else f"is {shortened(truth_word)!r}"
            reader.fault(row, truth, f"{said}; it must be machine or human, of two intervals first or second")
            continue
        said_word = text.text.strip().lower()
        meaning = verdict_of(said_word, reader.options.responses) if words == CHOICES[0] else said_word
        if meaning not in words:
            wrong[words].append(_WrongWord(row, verdict, text.text))
            continue
        if meaning != said_word:
            reader.source.used.add("responses")
        agent = "" if agents is None else row.cells.get(agents, "").strip()
        if is_empty(agent):
            agent = ""
        trial = row.cells.get(trials[0], "").strip() if trials else ""
        judged.append(_ForeignVerdict(row, reader.stimulus(row), trial, agent, truth_word, meaning, words))
    for pair, wrong_words in wrong.items():
        _tell_wrong_words(reader, wrong_words, pair, is_all=not judged)
    reader.tell_left_out(verdict, "rows_without_a_stimulus", "rows_without_an_answer")
    if not judged and not reader.problems:
        reader.refuse_nothing()
    return judged


def _trial_names(reader: TableReader, judged: Sequence[_ForeignVerdict]) -> list[str]:
    """The names of the trials that were judged.

    A column ``trial`` names them where each of its values is one stimulus of one agent: a stimulus may stand in several
    trials. Where it only numbers what a judge saw, what was judged is the trial. Raises InputError where two different
    answers would get one name.
    """
    by_trial: dict[str, set[str]] = defaultdict(set)
    for judgement in judged:
        by_trial[judgement.trial].add(judgement.name)
    if judged and "" not in by_trial and all(len(names) == 1 for names in by_trial.values()):
        for column in reader.columns.named(("trial", "trialid")):
            reader.columns.use(column)
        return [judgement.trial for judgement in judged]
    meant: dict[str, tuple[str, str]] = {}
    for judgement in judged:
        said = (judgement.stimulus, judgement.who)
        if meant.setdefault(judgement.name, said) != said:
            raise InputError(
                f"has two different answers that would both be named {shown(judgement.name)!r}; rename one"
            )
    return [judgement.name for judgement in judged]
