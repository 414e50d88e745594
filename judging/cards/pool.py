"""Pools: what participants answered, with where it comes from, under which licence, and with which checksum.

A pool is a folder with a manifest, ``pool.toml``. Pools in the box are folders of ``judging/cards/pools``. Most of them
are a manifest alone, because their files may not be passed on. ``docs/cards.md`` describes the keys.
"""

import hashlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.errors import InputError, Problem
from agents.stimuli import SHORT, TASKS, Asked
from judging.trial_sets.trial_set import TRIALS_FILE, key_path
from serving.exchange.importing.form_files import Form
from serving.files.row_problems import as_problems, field_problems

BOX = Path(__file__).with_name("pools")
MANIFEST = "pool.toml"
SCHEMA = "turinglike.pool/1"
FLAGS = ("unnamed", "drop_equal")
IMPORT_OPTIONS = ("columns", "rows", "rt", "frame", "fit", "origin", "units", "wide", "form", "unnamed", "drop_equal")


class PoolAnswers(BaseModel):
    """What participants answered to one task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: Asked
    """The task, by its full or short name."""
    file: str = Field(min_length=1)
    """The file of answers, relative to the folder of the manifest."""
    sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    """The checksum of the file; "" where nobody who wrote the manifest has had the file: then it is not verified."""
    stimuli: str = ""
    """The set of stimuli, relative to the folder of the manifest. "" where the cues in ``file`` are the set."""
    traces: str = ""
    """A run folder with the same answers and how they were written, relative to the folder of the manifest: the export
    of a study whose ``[traces]`` has ``record = true``. "" where there is none. Scores are then corrected for answers
    that participants did not write (``docs/contamination.md``)."""
    made_by: str = ""
    """What makes ``stimuli`` where they do not lie there: a command line, to be typed in the folder of the files."""
    page: str = ""
    """The address at which a person gets the file; "" where it lies beside the manifest."""
    import_: dict[str, Any] = Field(default={}, alias="import")
    """How the file is read: options of ``turinglike import``, such as ``columns``."""

    @field_validator("task", mode="before")
    @classmethod
    def _full_name(cls, value: Any) -> Any:
        return SHORT.get(value, value) if isinstance(value, str) else value

    @field_validator("import_")
    @classmethod
    def _known_options(cls, value: dict[str, Any]) -> dict[str, Any]:
        if unknown := [name for name in value if name not in IMPORT_OPTIONS]:
            raise ValueError(f"there is no option {', '.join(unknown)}; there are {', '.join(IMPORT_OPTIONS)}")
        # A form has most of these keys with the same meaning, and checks them.
        told = []
        try:
            Form.model_validate({"name": "pool", **{name: value[name] for name in value if name in Form.model_fields}})
        except ValidationError as error:
            told += [f"{name}: {message}" for name, message in field_problems(error)]
        for name, column in (value.get("columns") or {}).items():
            if not isinstance(column, str):
                told.append(f"columns.{name}: must be one name of a column")
        told += [f"{name}: must be true or false" for name in FLAGS if not isinstance(value.get(name, False), bool)]
        if told:
            raise ValueError("; ".join(told))
        return value


class PoolVerdicts(BaseModel):
    """What judges said of answers in the pool: the AI judges of a card are calibrated on these."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trials: str = Field(min_length=1)
    """The folder of the trials, which ``turinglike trials`` wrote, with its key beside it."""
    verdicts: str = Field(min_length=1)
    """The folder of the people's verdicts on them, which ``study export`` or ``import`` wrote."""


class Manifest(BaseModel):
    """What ``pool.toml`` says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["turinglike.pool/1"] = Field(alias="schema")
    """The version of this form."""
    name: str = Field(pattern="^[a-z0-9][a-z0-9._-]*$")
    """What the pool is called, such as "words-1910"."""
    version: str = Field(min_length=1)
    """The version of the pool: a change of its answers is another version."""
    source: str = Field(min_length=1)
    """Who published the answers, and where."""
    licence: str = Field(min_length=1)
    """Under which licence, or "not stated"."""
    collected: str = Field(min_length=1)
    """How the answers were collected: who was asked, when, in which words."""
    participants: int | None = Field(default=None, ge=1)
    """How many people answered; None where it is not known."""
    answers: list[PoolAnswers] = Field(min_length=1)
    """The files of answers, one for each task."""
    verdicts: list[PoolVerdicts] = []
    """Verdicts of people on answers of the pool."""

    @field_validator("answers")
    @classmethod
    def _one_of_each(cls, value: list[PoolAnswers]) -> list[PoolAnswers]:
        tasks = [answers.task for answers in value]
        if twice := sorted({task for task in tasks if tasks.count(task) > 1}):
            raise ValueError(f"{', '.join(twice)} has several files; put them together, or make two pools")
        return value


class Pool:
    """A pool with the folder in which its files lie.

    >>> pool = find_pool("words-1910")
    >>> pool.manifest.licence
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @property
    def name(self) -> str:
        """The name with the version, "words-1910/1"."""
        return f"{self.manifest.name}/{self.manifest.version}"

    def of_task(self, task: Asked) -> PoolAnswers | None:
        """The answers to a task; None where the pool has none."""
        return next((answers for answers in self.manifest.answers if answers.task == task), None)

    def problems(self, answers: PoolAnswers) -> list[Problem]:
        """What is wrong with the files of ``answers``: one is not there, or it is not the file of the manifest."""
        file = self.folder / answers.file
        if not file.is_file():
            way_out = "there is no such file"
            if answers.page:
                way_out = (
                    f"{answers.file} is not passed on with Turinglike; get it at {answers.page}, and say where it lies "
                    f"with --people {self.manifest.name}=FOLDER. Its licence: {self.manifest.licence}"
                )
            return [Problem(str(file), None, answers.task, way_out)]
        problems = []
        if answers.sha256 and checksum(file) != answers.sha256:
            told = f"is another file than pool {self.name} names: its SHA-256 is {checksum(file)}"
            problems.append(Problem(str(file), None, None, told))
        for verdicts in self.manifest.verdicts:
            trials = self.folder / verdicts.trials
            wanted = (trials / TRIALS_FILE, key_path(trials), self.folder / verdicts.verdicts / "run.json")
            problems += [
                Problem(str(path), None, "verdicts", "there is no such file") for path in wanted if not path.is_file()
            ]
        if answers.traces and not (self.folder / answers.traces / "run.json").is_file():
            problems.append(Problem(str(self.folder / answers.traces), None, "traces", "is no run folder"))
        if answers.stimuli and not (self.folder / answers.stimuli).exists():
            way_out = f"; it is made by: {answers.made_by}" if answers.made_by else ""
            told = f"there is no such set of stimuli{way_out}"
            problems.append(Problem(str(self.folder / answers.stimuli), None, answers.task, told))
        return problems


def checksum(file: Path) -> str:
    """The SHA-256 of a file, in hex digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def names_in_box() -> Sequence[str]:
    """The names of the pools in the box, in the order of the alphabet."""
    return sorted(path.parent.name for path in BOX.glob(f"*/{MANIFEST}"))


def find_pool(text: str) -> Pool:
    """The pool of a name in the box, of a folder with a manifest, or of a manifest. ``NAME=FOLDER`` is a pool in the
    box whose files lie in the folder. Raises InputError with every problem of the manifest."""
    name, equals, place = text.partition("=")
    if name in names_in_box():
        pool = _load(BOX / name / MANIFEST)
        if not equals:
            return pool
        if not Path(place).is_dir():
            raise InputError(f"--people {text}: there is no folder {place!r}")
        return Pool(Path(place).resolve(), pool.manifest)
    path = Path(text)
    manifest = path / MANIFEST if path.is_dir() else path
    if not manifest.is_file():
        if path.is_dir():
            raise InputError(f"--people {text}: has no {MANIFEST}; docs/cards.md has an example of one")
        raise InputError(
            f"--people {text}: is no pool in the box ({', '.join(names_in_box())}), and no folder with a {MANIFEST}"
        )
    return _load(manifest)


def _load(path: Path) -> Pool:
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    try:
        return Pool(path.resolve().parent, Manifest.model_validate(content))
    except ValidationError as error:
        raise InputError(f"{path} is no manifest of a pool", as_problems(error, str(path))) from None


def chosen(pools: Sequence[Pool], tasks: Sequence[str]) -> dict[Asked, tuple[Pool, PoolAnswers]]:
    """By task of ``tasks`` the pool that has answers to it, in the order of :data:`agents.stimuli.TASKS`. Raises
    InputError where two pools have the same task, and with every file that is not there or is another one."""
    found: dict[Asked, tuple[Pool, PoolAnswers]] = {}
    problems: list[Problem] = []
    for task in TASKS:
        if task not in tasks:
            continue
        of_task = [(pool, answers) for pool in pools if (answers := pool.of_task(task)) is not None]
        if len(of_task) > 1:
            names = " and ".join(pool.name for pool, _ in of_task)
            problems.append(Problem("--people", None, task, f"{names} both have answers; leave one out"))
        for pool, answers in of_task[:1]:
            found[task] = (pool, answers)
            problems += pool.problems(answers)
    traced = {pool.folder / answers.traces for pool, answers in found.values() if answers.traces}
    if len(traced) > 1:
        problems.append(Problem("--people", None, "traces", "two pools have traces: make a card for each of them"))
    if problems:
        raise InputError("the pools cannot be used; nothing was started", problems)
    return found
