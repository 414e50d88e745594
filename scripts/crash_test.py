"""Kill a run at random moments, resume it, and compare its records with those of an undisturbed run. Prints a line per
round, JSON last; exits 1 if a promise was broken."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

PLUGIN = Path(__file__).resolve().parent.parent / "tests" / "plugin"  # where the no-op agents are
VICTIMS = {"driver": "serving.cli", "worker": "ray::WorkerActor", "raylet": "raylet", "gcs": "gcs_server"}
EXIT = {"driver": -9, "worker": 0, "raylet": 5, "gcs": 5}  # if it was killed before the end
FORMS = {"batches": "null", "continuous": "null-one", "conversations": "null~null"}
STIMULI = {"batches": 1500, "continuous": 1500, "conversations": 60}
SETTINGS = {
    "batches": ["--batch-size", "16", "--set", "null.delay_s=0.025"],
    "continuous": ["--set", "null-one.delay_s=0.1"],
    "conversations": ["--batch-size", "16", "--set", "null.delay_s=0.05"],
}


@dataclass
class Outcome:
    """``done`` records were there after the kill; ``broken`` names the broken promise."""

    form: str
    victim: str
    after: float
    exit_code: int
    done: int
    resumed: int
    broken: str


def write_set(folder: Path, form: str) -> Path:
    path = folder / f"{form}.jsonl"
    conversation = {"task": "conversation", "topic": "books", "exchanges": 12}
    extra = conversation if form == "conversations" else {"task": "word_association", "cue": "sun"}
    path.write_text("".join(json.dumps({"id": f"s{i:05d}", **extra}) + "\n" for i in range(STIMULI[form])))
    return path


def command(source: Path, form: str, out: Path) -> list[str]:
    call = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", FORMS[form], "--out", str(out)]
    return [*call, *SETTINGS[form], "--replicas", "2"]


def answers(out: Path, form: str) -> tuple[dict[tuple[str, int], Any], int]:
    """The answers by key, and the number of lines."""
    path = out / "records" / f"{FORMS[form]}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    records = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return {(r["stimulus"], r["sample"]): (r["status"], r["seed"], r["answer"]) for r in records}, len(lines)


def victims(driver: psutil.Process, kind: str) -> list[psutil.Process]:
    if kind == "driver":
        return [driver]
    children = driver.children(recursive=True)
    return [child for child in children if VICTIMS[kind] in _names(child)]


def _names(process: psutil.Process) -> list[str]:
    try:
        return [process.name(), *process.cmdline()[:1]]
    except psutil.Error:
        return []


def bytes_written(out: Path, form: str) -> int:
    """Of answers and turns."""
    files = [out / part / f"{FORMS[form]}.jsonl" for part in ("records", "turns")]
    return sum(path.stat().st_size for path in files if path.exists())


def one_round(folder: Path, form: str, victim: str, moment: float, expected: dict[Any, Any]) -> Outcome:
    """Start, kill at ``moment`` (0: at the start, 1: when as much is written as at the end), resume, compare."""
    out = Path(tempfile.mkdtemp(prefix=f"{form}-", dir=folder)) / "run"
    call = command(folder / f"{form}.jsonl", form, out)
    began = time.monotonic()
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    driver = psutil.Process(process.pid)
    if victim != "worker" and moment < 0.4:  # while it starts
        while process.poll() is None and not victims(driver, victim):
            time.sleep(0.01)
        time.sleep(moment * 10)
    else:
        most = moment * bytes_written(folder / f"{form}-reference", form)
        while process.poll() is None and bytes_written(out, form) <= most:
            time.sleep(0.002)
    after = time.monotonic() - began
    for target in victims(driver, victim) if process.poll() is None else []:
        target.kill()
    errors = process.communicate()[1]
    exit_code = process.returncode
    done = len(answers(out, form)[0])
    resumed = subprocess.run(call, capture_output=True, text=True, check=False)
    records, lines = answers(out, form)
    broken = ""
    if exit_code != EXIT[victim] and not (exit_code == 0 and done == STIMULI[form]):
        broken = f"ended with {exit_code}: {errors[-300:]}"
    elif exit_code == 5 and ("Traceback" in errors or errors.count("turinglike: ") != 1):
        broken = f"did not end with one sentence: {errors[-300:]}"
    elif resumed.returncode != 0:
        broken = f"resume ended with {resumed.returncode}: {resumed.stderr[-300:]}"
    elif lines != len(records):
        broken = f"{lines} lines for {len(records)} keys"
    elif records != expected:
        wrong = [key for key in expected if records.get(key) != expected[key]]
        broken = f"{len(wrong)} answers missing or different, {wrong[:3]}"
    return Outcome(form, victim, round(after, 2), exit_code, done, resumed.returncode, broken)


def reference(folder: Path, form: str) -> dict[Any, Any]:
    """The answers of an undisturbed run."""
    out = folder / f"{form}-reference"
    subprocess.run(command(write_set(folder, form), form, out), check=True, capture_output=True)
    records, lines = answers(out, form)
    if lines != STIMULI[form] or len(records) != lines:
        raise SystemExit(f"the undisturbed run of {form} has {lines} records for {STIMULI[form]} stimuli")
    return records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PLUGIN), os.environ.get("PYTHONPATH"))))
    chance = random.Random(options.seed)
    plan = [(form, victim) for form in FORMS for victim in VICTIMS]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        folder = Path(name)
        expected = {form: reference(folder, form) for form in FORMS}
        for number in range(options.rounds):
            form, victim = plan[number % len(plan)]
            outcome = one_round(folder, form, victim, chance.random(), expected[form])
            outcomes.append(outcome)
            print(
                f"{number + 1:3} {form:13} {victim:7} after {outcome.after:5.1f} s  exit {outcome.exit_code:4}  "
                f"{outcome.done:5} of {STIMULI[form]} done  {outcome.broken or 'kept'}",
                flush=True,
            )
    broken = [asdict(outcome) for outcome in outcomes if outcome.broken]
    early = sum(outcome.done < STIMULI[outcome.form] for outcome in outcomes)
    print(json.dumps({"rounds": len(outcomes), "unfinished": early, "broken": broken}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
