"""Tells of real answers (docs/tells.md): words of people and machines, and scanpaths, judged in all versions.

    python scripts/real_tells.py OUT [--words PEOPLE.json] [--scanpaths RUN ...] [--osie FOLDER] [--skip-1910]

In the folder OUT there are then trials, verdicts and scores of:

- ``words-1910``, without ``--skip-1910``: the words of people that are in the repository, beside ``minilm`` and
  ``smollm2-135m``, which answer the same cues here (the weights are fetched);
- ``words-published``, with ``--words``: people's words in the form of examples/people_words.json, beside the machines
  of the 2022 paper's Table S4 (examples/words_published.json). The benchmark's words are not in this repository;
- ``scanpaths``, with ``--scanpaths``: run folders with people's scanpaths and those of agents on the same pictures,
  such as ``gbvs`` and ``center``;
- ``osie``, with ``--osie``: the scanpaths of OSIE (scripts/osie_scanpaths.py says what FOLDER has) on each tenth of its
  pictures, beside those of ``gbvs``, ``center`` and ``random``. The agents draw how many fixations they make from
  people's numbers on the other pictures;
- ``osie-15``, with ``--osie``: the same with agents as they are, which make 15 fixations. Its people's answers and
  pictures are those of ``osie``.

Words are shown as they were written, since the rules of trials take capitals and plurals away already. Judges are a
linear classifier and the judges by a single cue. What is there already stays: the same command goes on. The exit code
is that of the first command that fails.
"""

import argparse
import shlex
import sys
from pathlib import Path

from osie_scanpaths import tell, write_files

from agents.errors import InputError
from serving.cli import main as turinglike

ROOT = Path(__file__).resolve().parent.parent
CUES = ROOT / "examples" / "demo.jsonl"
OF_1910 = ROOT / "examples" / "people_words.json"
PUBLISHED = ROOT / "examples" / "words_published.json"
SMALL = "smollm2-135m"
OF_WORDS = ("--task", "word", "--as-written", "--every", "--without", "inflection,punctuation,case,length")
OF_PATHS = ("--task", "attention", "--common", "--without", "first_fixation,length,path_length")
LOOKING = ("gbvs", "center", "random")
EVERY = 10  # of OSIE's 700 pictures: a trial of each agent on each of 70
JUDGES = "svm,cue-length,cue-punctuation,cue-frequency"
JUDGES_OF_PATHS = "svm,cue-length,cue-path-length,cue-center"
WHOLE = ("--set", "svm.path=padded15")  # scanpaths of fewer than ten fixations are judged, too


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--words", type=Path, metavar="PEOPLE.json")
    parser.add_argument("--scanpaths", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--osie", type=Path, metavar="FOLDER")
    parser.add_argument("--skip-1910", action="store_true", help="leave out the words of 1910")
    options = parser.parse_args()
    code = 0
    if not options.skip_1910:
        code = words_1910(options.out / "words-1910")
    if not code and options.words is not None:
        code = published_words(options.out / "words-published", options.words)
    if not code and options.scanpaths is not None:
        out = options.out / "scanpaths"
        code = judged(out, options.scanpaths, (*OF_PATHS, "--per-agent", 60), JUDGES_OF_PATHS, WHOLE)
    if not code and options.osie is not None:
        code = osie(options.out, options.osie)
    return code


def words_1910(out: Path) -> int:
    answers = out / "answers"
    if not (answers / "import.json").is_file():
        agents = ("--agents", f"minilm,{SMALL}", "--set", "minilm.vocabulary=5000", "--samples", 5)
        steps = (
            ("fetch", SMALL),
            ("generate", CUES, *agents, "--seed", 0, "--here", "--out", answers),
            ("import", OF_1910, "--task", "word", "--out", answers),
        )
        if (code := run_all(steps)) not in (0, 1):  # 1: a chat model gave no word to a cue
            return code
    return judged(out, [answers], OF_WORDS, JUDGES)


def published_words(out: Path, people: Path) -> int:
    answers = out / "answers"
    if not answers.exists():
        code = run_all([("import", PUBLISHED, people, "--task", "word", "--out", answers)])
        if code:
            return code
    return judged(out, [answers], (*OF_WORDS, "--common"), JUDGES)


def osie(out: Path, source: Path) -> int:
    """Scanpaths of OSIE beside agents that make as many fixations as people, and beside agents that make 15."""
    paths = out / "osie" / "paths"
    people = out / "osie" / "people"
    if not paths.exists():
        try:
            counts = write_files(source, paths, EVERY)
        except InputError as error:
            tell(error)
            return error.exit_code
        print(f"OSIE: {', '.join(f'{number} {what}' for what, number in counts.items())}", flush=True)
    if not (people / "import.json").is_file():
        table = paths / "scanpaths.csv"
        code = run_all([("import", table, "--task", "attention", "--frame", "800x600", "--out", people)])
        if code:
            return code
    lengths = [word for name in LOOKING for word in ("--set", f"{name}.lengths={paths / 'lengths.txt'}")]
    for name, settings in (("osie", lengths), ("osie-15", [])):
        run = out / name / "run"
        asked = ("generate", paths / "pictures.jsonl", "--agents", ",".join(LOOKING), *settings)
        code = run_all([(*asked, "--seed", 0, "--here", "--device", "cpu", "--out", run)])
        code = code or judged(out / name, [people, run], OF_PATHS, JUDGES_OF_PATHS, WHOLE)
        if code:
            return code
    return 0


def judged(out: Path, runs: list[Path], drawn: tuple[object, ...], judges: str, settings: tuple[str, ...] = ()) -> int:
    """Trials of the answers in ``runs``, their verdicts and scores."""
    trials = out / "trials"
    steps: list[tuple[object, ...]] = []
    if not trials.exists():
        steps.append(("trials", *runs, *drawn, "--seed", 0, "--out", trials))
    steps += [
        ("judge", trials, "--judges", judges, *settings, "--here", "--out", out / "verdicts"),
        ("score", out / "verdicts", "--out", out / "scores", "--force"),
    ]
    return run_all(steps)


def run_all(steps: list[tuple[object, ...]] | tuple[tuple[object, ...], ...]) -> int:
    """Carry out commands until one fails; returns its exit code. ``generate`` may end with 1, and the others follow."""
    last = 0
    for words in steps:
        print(f"$ turinglike {shlex.join(map(str, words))}", flush=True)
        code = turinglike(list(map(str, words)))
        if code and (words[0], code) != ("generate", 1):
            return code
        last = code or last
    return last


if __name__ == "__main__":
    sys.exit(main())
