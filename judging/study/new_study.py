"""``turinglike study new``: a study's folder with all its choices, made to fit a set."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.errors import InputError
from agents.stimuli import TASKS, Asked, parse_row
from judging.study.design import presets
from judging.study.design.chosen_settings import with_settings
from judging.study.design.english_texts import sentence_on
from judging.study.design.settings import FILE, JudgesSettings, parse_settings
from judging.study.needed_packages import what_serving_lacks
from judging.study.pages.pool import HOW_TO_CATCH, TrialPool
from judging.trial_sets.trial_set import TRIALS_FILE
from serving.files.output_paths import new_folder
from serving.files.terminal import print_line
from serving.files.words import count
from serving.sets.set_rows import only
from serving.sets.stimulus_set import read_rows

README = """\
This folder is a study of Turinglike. `study.toml` contains its settings. `events.jsonl` contains what judges did; each
judge has a random code there.

Do not pass on personal data. These are `personal.jsonl` (what judges said about themselves, and their ids from a
panel), and the texts in `events.jsonl` that judges wrote in their own words. `links.jsonl` contains only hashes of
links.

`turinglike study forget STUDY CODE` deletes everything about a judge.
"""


def new_study(
    source: Path | None,
    out: Path,
    task: Asked | None = None,
    preset: str | None = None,
    settings: Sequence[str] = (),
) -> None:
    """Write a study with all its choices: for a trial set, a stimulus set or, without ``source``, for live tests.

    ``task`` is needed where the set has several. ``settings`` are choices of the user, as "trials.number=20". What is
    changed to fit the set is printed. Raises InputError.
    """
    preset = preset or "plain"
    if source is None:
        _check_of_tests(preset, task)
        _write_study(out, presets.study_of_tests(preset), settings)
        return
    if preset in presets.OF_TESTS:
        raise InputError(f"study new: --preset {preset} makes live tests, which show no set: leave {source} out")
    of_trials = (source / TRIALS_FILE).is_file()
    rows = [*read_rows(source / TRIALS_FILE if of_trials else source, choose=only() if task is None else only(task))]
    if problems := [problem for row in rows for problem in row.problems]:
        raise InputError(f"{source} has {count(len(problems), 'problem')}", problems)
    stimuli = [parse_row(row.canonical) for row in rows if row.canonical is not None]
    there = Counter[Any](getattr(stimulus, "asked", stimulus.task) for stimulus in stimuli)
    if task is None and len(there) == 1:
        [task] = there
    if task is None or task not in there:
        tasks = ", ".join(name for name in TASKS if name in there)
        raise InputError(f"{source} has the tasks {tasks or '(none)'}: choose the task of the study with --task")
    relative = os.path.relpath(source, out)
    if not of_trials:
        if preset != "plain":
            raise InputError(
                f"study new: --preset {preset} needs a folder of `turinglike trials`, which people judge; {source} is "
                "a stimulus set, which people answer: leave --preset out"
            )
        text = presets.study_of_participants(relative, task, there[task])
        number = tomllib.loads(text)["answers"]["number"]
        wanted = tomllib.loads(presets.study_of_participants(relative, task))["answers"]["number"]
        is_given = any(setting.startswith("answers.number=") for setting in settings)
        if number != wanted and not is_given:
            print_line(f"answers.number = {number}, not {wanted}: the set has {count(number, 'stimulus', 'stimuli')}")
        _write_study(out, text, settings)
        return
    of_pairs = any(getattr(stimulus, "beside", None) is not None for stimulus in stimuli)
    if of_pairs and preset != "plain":
        raise InputError(f"--preset {preset}: the papers have no pairs of conversations")
    text = with_settings(presets.study_of_judges(relative, task, preset, of_pairs=of_pairs), settings)
    chosen = parse_settings(text, out / FILE)
    assert isinstance(chosen, JudgesSettings)
    pool = TrialPool(source, chosen)
    changed = pool.fit([setting.partition("=")[0].removeprefix("trials.") for setting in settings])
    if "catch" in changed:
        print_line(f"trials.catch = {changed['catch']}: there are no catch trials. To have some, {HOW_TO_CATCH}")
    if aside := {name: value for name, value in changed.items() if name in ("practice", "sample")}:
        values = ", ".join(f"trials.{name} = {str(value).lower()}" for name, value in aside.items())
        print_line(f"{values}: practice and examples would take more of the stimuli than the trials that count")
    if "number" in changed:
        print_line(f"trials.number = {changed['number']}, not {chosen.trials.number}: {pool.why_no_more()}")
    text = presets.study_of_judges(relative, task, preset, of_pairs=of_pairs, changed=changed)
    wanted = 0 if of_pairs else presets.preset(preset, task)[0].get("feedback", 0)
    feedback = tomllib.loads(text)["trials"]["feedback"]
    if feedback != wanted:
        print_line(f"trials.feedback = {feedback}, not {wanted}: at least half of the trials give no feedback")
    _write_study(out, text, settings)
    for problem in pool.problems():  # what could not be made to fit, or was chosen so
        print_line(f"not ready yet: {problem}")


def _check_of_tests(preset: str, task: str | None) -> None:
    """Raises InputError for what goes with no live tests."""
    if preset not in presets.OF_TESTS:
        names = " or ".join(presets.OF_TESTS)
        raise InputError(f"study new: name a trial set or a stimulus set, or give --preset {names}, which need neither")
    if task not in (None, "conversation"):
        raise InputError(f"study new: --preset {preset} makes conversations, not {task}: leave --task out")


def _write_study(out: Path, text: str, settings: Sequence[str]) -> None:
    text = with_settings(text, settings)
    made_settings = parse_settings(text, out / FILE)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists already: give a new folder")
    with new_folder(out, marker=FILE, force=False) as made:
        made.chmod(0o700)
        (made / "README.md").write_text(README, "utf-8")
        (made / FILE).write_text(text, "utf-8")
    if told := sentence_on(made_settings):
        print_line(told)
    print_line(f"{out / FILE}: write your consent text into this file, then run")
    print_line(f"  turinglike study check {out}")
    if (lacking := what_serving_lacks()) is not None:
        print_line(lacking)
