"""Verdicts of people's tables: on trials of ours, or on stimuli of others with the truth beside them."""

from collections.abc import Sequence
from typing import Any

from agents.answers import VerdictAnswer, is_blank, plain
from agents.errors import InputError
from serving.runs.import_source import UNKNOWN
from serving.runs.people_table import TableRow, tell_several_answers, trial_column
from serving.runs.table_cells import NUMBER, CellText, read_text, shortened, verdict_of
from serving.runs.table_columns import AGENTS, TRIALS, TRIALS_OF_JSPSYCH
from serving.runs.table_reader import TableReader

TRUTHS = ("truth", "groundtruth")
CHOICES = (("machine", "human"), ("first", "second"))  # of one interval and of two


def add_verdicts(reader: TableReader) -> None:
    """Add the verdicts of a table. Raises InputError."""
    columns = reader.columns
    has_truth = "truth" in columns.given or bool(columns.named(TRUTHS))
    if has_truth and not reader.table.is_jspsych:
        reader.source.form = "judgements"
        _add_elsewhere(reader)
    else:
        _add_on_trials(reader)


def _add_on_trials(reader: TableReader) -> None:
    """Verdicts on trials of ours: a row names a trial, and has a ``verdict`` or a response with a meaning."""
    source = reader.source
    is_jspsych = reader.table.is_jspsych
    reader.name_stimuli(trial_column(reader.table, TRIALS_OF_JSPSYCH if is_jspsych else TRIALS))
    columns = reader.columns
    verdict = columns.find("verdict", ("verdict",))
    response = columns.find("response", ("response",))
    if verdict is None and response is None:
        response = reader.response_column()
    judged: list[tuple[TableRow, str, dict[str, Any]]] = []
    for row in reader.table.rows:
        trial = reader.stimulus(row)
        column, text = _said(reader, row, verdict, response)
        if not trial:
            reader.leave_out(row, None)
        elif text.state == "missing":
            reader.leave_out(row, text)
        elif text.state == "wrong":
            reader.fault(row, column, text.fault)
        elif (answer := _answer(text.text, reader)) is None:
            reader.fault(row, column, _wrong_verdict(row.cells.get(column, ""), column == verdict))
        else:
            judged.append((row, trial, answer))
    no_trial = "screens_that_name_no_trial" if is_jspsych else "rows_without_a_stimulus"
    no_answer = "trials_without_a_response" if is_jspsych else "rows_without_an_answer"
    reader.tell_left_out(response or verdict or "", no_trial, no_answer)
    if not judged and not reader.problems:
        reader.refuse_nothing()
    reader.name_people([row for row, *_ in judged])
    reader.drop_equal_rows()
    kept = {id(row) for row in reader.table.rows}
    judged = [(row, trial, answer) for row, trial, answer in judged if id(row) in kept]
    sure = _confidences(reader, [row for row, *_ in judged])
    times = reader.times([row for row, *_ in judged])
    answered = []
    for at, (row, trial, answer) in enumerate(judged):
        if at in sure:
            answer = {**answer, "confidence": sure[at]}
        written = row.cells.get(response or verdict or "", "").strip()
        raw: Any = {"response": written, "rt": times.get(at)} if is_jspsych or at in times else written
        judge = reader.person(row)
        source.add(trial, judge, raw, answer)
        answered.append((judge, trial, row))
    tell_several_answers(source, reader.table, answered, "verdict", counts_once=True)


def _said(reader: TableReader, row: TableRow, verdict: str | None, response: str | None) -> tuple[str, CellText]:
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


def _wrong_verdict(value: str, is_word: bool) -> str:
    if is_word:
        return f"must be human or machine, not {shortened(value)!r}"
    return f"must be human or machine, or what --responses give a meaning, not {shortened(value)!r}"


def _confidences(reader: TableReader, rows: Sequence[TableRow]) -> dict[int, float]:
    """Confidences from 0 to 1, by the place in ``rows``. On another scale the column is left unread, and so named."""
    column = reader.columns.given.get("confidence") or next(iter(reader.columns.named(("confidence",))), None)
    if column is None:
        return {}
    cells = [row.cells.get(column, "").strip() for row in rows]
    filled = [cell for cell in cells if not is_blank(cell)]
    if not filled or not all(NUMBER.fullmatch(cell) and 0 <= float(cell) <= 1 for cell in filled):
        if filled:
            reader.source.remarks.append(f"column {column} is not from 0 to 1, and is left out")
        return {}
    reader.columns.use(column)
    return {at: float(cell) for at, cell in enumerate(cells) if not is_blank(cell)}


# on stimuli of others


def _add_elsewhere(reader: TableReader) -> None:
    """Verdicts with their truth in ``raw``. Of two intervals truth and verdict are the machine's, first or second."""
    source = reader.source
    columns = reader.columns
    stimulus = columns.find("stimulus", ("stimulus", "stimulusid", "item", "itemid", "trial"))
    truth = columns.find("truth", TRUTHS)
    verdict = columns.find("verdict", ("verdict",)) or columns.find("response", ("response",))
    wanted = (("stimulus", stimulus), ("truth", truth), ("verdict", verdict))
    absent = [name for name, column in wanted if column is None]
    if stimulus is None or truth is None or verdict is None:
        raise InputError(f"has no column {' and no column '.join(absent)}; its columns are {columns.there()}")
    agents = columns.find("agent", AGENTS)
    confidence = columns.find("confidence", ("confidence",))
    judged = []
    for row in reader.table.rows:
        fields = {
            "stimulus": row.cells.get(stimulus, "").strip(),
            "truth": row.cells.get(truth, "").strip(),
            "verdict": row.cells.get(verdict, "").strip(),
            "agent": "" if agents is None else row.cells.get(agents, "").strip(),
            "confidence": "" if confidence is None else row.cells.get(confidence, "").strip(),
        }
        text = read_text(fields["verdict"])
        if text.state == "missing":
            reader.leave_out(row, text)
            continue
        if text.state == "wrong":
            reader.fault(row, verdict, text.fault)
            continue
        before = len(reader.problems)
        _check(reader, row, fields, {"stimulus": stimulus, "truth": truth, "verdict": verdict})
        if len(reader.problems) == before:
            judged.append((row, fields))
    reader.tell_left_out(verdict, "rows_without_a_stimulus", "rows_without_an_answer")
    if not judged and not reader.problems:
        reader.refuse_nothing()
    reader.name_people([row for row, _ in judged])
    reader.drop_equal_rows()
    kept = {id(row) for row in reader.table.rows}
    answered = []
    for row, fields in judged:
        if id(row) in kept:
            name = _add_one(reader, row, fields)
            answered.append((reader.person(row), name, row))
    tell_several_answers(source, reader.table, answered, "verdict", counts_once=True)


def _check(reader: TableReader, row: TableRow, fields: dict[str, str], columns: dict[str, str]) -> None:
    """Note what is wrong in a row: an empty field, a word that is none of the two, a confidence beyond 0 and 1."""
    for name in ("stimulus", "truth"):
        if is_blank(fields[name]):
            reader.fault(row, columns[name], "is empty")
    words = _words(fields["truth"])
    for name in ("truth", "verdict"):
        fields[name] = fields[name].lower()
        meaning = verdict_of(fields[name], reader.options.responses) if name == "verdict" else None
        if meaning is not None and words == CHOICES[0]:
            if fields[name] != meaning:
                reader.source.used.add("responses")
            fields[name] = meaning
        if fields[name] and fields[name] not in words:
            message = f"must be {' or '.join(words)}, not {shortened(fields[name])!r}"
            reader.fault(row, columns[name], message)
    confidence = fields["confidence"]
    is_share = NUMBER.fullmatch(confidence) is not None and 0 <= float(confidence) <= 1
    if not is_blank(confidence) and not is_share:
        reader.fault(row, "confidence", f"must be from 0 to 1, not {shortened(confidence)!r}")


def _words(truth: str) -> tuple[str, str]:
    for pair in CHOICES:
        if truth.lower() in pair:
            return pair
    return CHOICES[0]


def _add_one(reader: TableReader, row: TableRow, fields: dict[str, str]) -> str:
    """Add a verdict; returns the name that its trial gets."""
    words = _words(fields["truth"])
    is_pair = words == CHOICES[1]
    is_machine = fields["truth"] == words[0]
    says_machine = fields["verdict"] == words[0]
    truth = "machine" if is_machine else "human"
    agent = fields["agent"]
    if not agent:
        agent = UNKNOWN if is_machine or is_pair else "human"
    raw = {**fields, "agent": agent, "truth": truth, "pair": is_pair}
    sure = None if is_blank(fields["confidence"]) else float(fields["confidence"])
    answer = VerdictAnswer(verdict="machine" if says_machine else "human", confidence=sure)
    name = " ".join((fields["stimulus"], agent, truth))
    reader.source.add(name, reader.person(row), raw, plain(answer))
    return name
