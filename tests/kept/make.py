"""Make the folders that this version leaves behind: a killed run, a killed run of judges, trials, studies.

``python tests/kept/make.py OUT`` drives the ``serving.cli`` that Python imports, by its command line and its HTTP
routes alone; PYTHONPATH chooses another version. README.md tells what is where.

``python tests/kept/make.py --expected FOLDER`` writes ``expected.json`` of what is kept in FOLDER, and nothing else."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outside import MODELS, changed, codes, converse, meet, models, served, take_part, turinglike
from PIL import Image as PILImage

SERVERS = ("openai-chat", "openai-completion", "openai-universal", "claude-openai", "gpt-3.5-turbo", "gpt-3.5-turbo-ai")
LIGHT = ("mmcq", "mmcq-lab", "gbvs", "center", "random", "catch", "minilm", "eliza~eliza")
PAIRS = ("openai-chat~eliza", "gpt-3.5-turbo~gpt-3.5-turbo-ai")
AGENTS = [*LIGHT, "openai-chat", "openai-completion", "openai-universal", "claude-openai", *PAIRS]
JUDGES = ("svm", "llm-judge-openai")
CUES = ("moon", "bird", "road", "milk", "fire", "rain", "gold")
DRAWN = ("--task", "word", "--agents", "minilm,openai-chat", "--seed", "7")
AT_ONCE = {"type_mean": 0.0, "type_sd": 0.0, "read_mean": 0.0, "read_sd": 0.0, "think_scale": 0.0}
KEPT = "/kept"  # stands for the folder in what is kept
NOW = re.compile(r'("(?:created|run|key_sha256)": ?)"[^"]*"')
LONG_NUMBER = re.compile(r"-?[0-9]+\.[0-9]{9,}(?:e[-+]?[0-9]+)?")  # has more than nine digits
Cookies = dict[str, dict[str, str]]


def generate(out: Path, agents: Sequence[str] = AGENTS) -> list[str]:
    """The command's arguments for the run of ``agents`` in ``out``; the settings of others would be refused."""
    asked = {member for name in agents for member in name.split("~")}
    options = ["--set", "minilm.vocabulary=300"]
    for name in SERVERS:
        if name in asked:
            options += ["--set", f"{name}.base_url={MODELS}", "--set", f"{name}.key_variable="]
    return ["generate", "set.jsonl", "--agents", ",".join(agents), "--out", str(out), "--here", *options]


def judge(out: Path) -> list[str]:
    """The command's arguments for the verdicts in ``out``."""
    server = ["--set", f"llm-judge-openai.base_url={MODELS}", "--set", "llm-judge-openai.key_variable="]
    return ["judge", "trials", "--judges", ",".join(JUDGES), "--out", str(out), "--here", *server]


def write_set() -> list[dict[str, Any]]:
    """Pictures, and the rows of a set about all tasks."""
    Path("pictures").mkdir()
    rows: list[dict[str, Any]] = []
    for number, color in enumerate([(200, 30, 30), (30, 60, 200), (40, 160, 60)]):
        picture = PILImage.new("RGB", (48, 36), color)
        picture.paste((250, 240, 220), (6 + 9 * number, 5, 20 + 9 * number, 17))
        name = f"pictures/{number}.png"
        picture.save(name, optimize=True)
        rows += [
            {"id": f"{task}/{number}", "task": task, "image": name, "present": ["box"], "absent": ["dog"]}
            for task in ("color_estimation", "object_detection", "attention_prediction", "image_captioning")
        ]
    rows += [{"id": cue, "task": "word_association", "cue": cue, "meta": {"letters": len(cue)}} for cue in CUES]
    for number, mode in enumerate(["ping-pong", "ping-pong", "burst"]):
        talk = {"id": f"talk/{number}", "task": "conversation", "topic": "music", "exchanges": 6}
        rows.append(talk | {"mode": mode, "who_starts": "A"})
    return rows


def write_rows(path: str, rows: list[dict[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def killed(arguments: list[str], hangs_at: int, settle: float = 4.0) -> None:
    """Run a command whose models hang from a request on; kill it when all that can be answered is."""
    with models(hangs_at) as server:
        command = [sys.executable, "-m", "serving.cli", *arguments]
        process = subprocess.Popen(command, env=os.environ | server.environment(), start_new_session=True)
        assert server.hung.wait(180)
        time.sleep(settle)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(run: Path) -> dict[str, Any]:
    """Status, seed and the answer's hash, of each key of a run."""
    found = {}
    for path in sorted((run / "records").glob("*.jsonl")):
        for record in map(json.loads, path.read_text().splitlines()):
            key = f"{record['agent']} {record['task']} {record['stimulus']} {record['sample']}"
            answer = hashlib.sha256(json.dumps(record["answer"], sort_keys=True).encode()).hexdigest()
            found[key] = [record["status"], record["seed"], answer[:16]]
    return dict(sorted(found.items()))


def make_runs() -> None:
    rows = write_set()
    half = [row for row in rows if not row["id"].endswith(("/2", "gold"))]
    write_rows("set.jsonl", half)
    killed(generate(Path("run")), hangs_at=36)
    write_rows("set.jsonl", rows)
    with models() as server:
        # some replies of a model say nothing
        turinglike(*generate(Path("whole")), exits=1, environment=server.environment())
    Path("answers.json").write_text(json.dumps(answers(Path("whole")), indent=0))


def make_verdicts() -> None:
    write_rows("words.jsonl", [{"id": cue, "task": "word_association", "cue": cue} for cue in CUES])
    turinglike("trials", "whole", "people", "-o", "trials", *DRAWN)
    killed(judge(Path("verdicts")), hangs_at=8)
    with models() as server:
        turinglike(*judge(Path("judged")), environment=server.environment())
    Path("verdicts.json").write_text(json.dumps(answers(Path("judged")), indent=0))


def make_studies_of_answers(cookies: Cookies) -> None:
    """``asked``: words of people, the last of whom was told to answer anew and is half-way. ``captions``: with flags;
    closed."""
    study = Path("studies/asked")
    turinglike("study", "new", "words.jsonl", "-o", study, "--task", "word")
    changed(study, number=len(CUES), before=["age"], after=[])
    with served(study) as server:
        for _ in range(3):
            visitor = server.visitor()
            assert visitor.go(visitor.post("/join"))["kind"] == "end"
        visitor = server.visitor()
        view = visitor.go(visitor.post("/join"), lambda view: view["kind"] == "ask")
        assert visitor.post("/answer", step=view["step"], answer={"answer": view["cue"], "rt": 1500.0})["told"]
        visitor.go(view, lambda view: view.get("number") == 3)
        cookies["asked"] = {"half": visitor.headers["cookie"]}
        server.kill()
    turinglike("study", "export", study, "-o", "people")
    study = Path("studies/captions")
    turinglike("study", "new", "set.jsonl", "-o", study, "--task", "caption")
    changed(study, number=2, before=[], after=[], checks="note")
    with served(study) as server:
        visitor = server.visitor()
        assert visitor.go(visitor.post("/join"))["kind"] == "end"
    turinglike("study", "close", study)


def has_preset(name: str) -> bool:
    """Whether this version's `study new` knows the preset."""
    return name in turinglike("study", "new", "--help")


def make_studies_of_judges(cookies: Cookies) -> None:
    """``judges``: by personal links, whoever loads again is blocked; somebody declined, left, is half-way.
    ``2022``, ``2025``, ``feedback`` where there is one: the papers' presets. ``restarted``: of an older version."""
    study = Path("studies/judges")
    turinglike("study", "new", "trials", "-o", study)
    changed(study, number=3, practice=1, entry="links", reload="block", worker="PID", wanted=50, most=60)
    is_newer = "break_every" in (study / "study.toml").read_text()  # than 0.2.0, which has no breaks and no /leave
    if is_newer:
        changed(study, break_every=2, parameters=["STUDY_ID"])
    links = [line.partition("?link=")[2] for line in turinglike("study", "links", study, 6).splitlines()]
    with served(study) as server:
        about = {"worker": "panel-1", "parameters": {"STUDY_ID": "s1"}}
        finished, blocked, second, declined, half, left = (server.visitor() for _ in links)
        assert finished.go(finished.post("/join", link=links[0], **about))["kind"] == "end"
        blocked.go(blocked.post("/join", link=links[1]), lambda view: view.get("number") == 2)
        assert blocked.post("/now", loaded=True)["kind"] == "blocked"
        view = second.post("/join", link=links[2])
        second.answer(view, {"agree": True})
        again = server.visitor()
        again.go(again.post("/join", link=links[2]), lambda view: view["kind"] == "trial")
        declined.answer(declined.post("/join", link=links[3]), {"agree": False})
        half.go(half.post("/join", link=links[4]), lambda view: view.get("number") == 2)
        view = left.go(left.post("/join", link=links[5]), lambda view: view.get("number") == 2)
        if is_newer:
            left.post("/leave", list=view["list"])
        cookies["judges"] = {"half": half.headers["cookie"], "second": again.headers["cookie"]}
        server.kill()
    for preset in ("2022", "2025", "feedback"):
        study = Path(f"studies/{preset}")
        if not has_preset(preset):
            continue
        turinglike("study", "new", "trials", "-o", study, "--preset", preset)
        changed(study, number=3)
        if preset == "feedback":
            changed(study, feedback=2)
        with served(study) as server:
            visitor = server.visitor()
            half = server.visitor()
            assert visitor.go(visitor.post("/join"))["kind"] == "end"
            half.go(half.post("/join"), lambda view: view.get("number") == 2)
            cookies[preset] = {"half": half.headers["cookie"]}
            server.kill()
    study = Path("studies/restarted")
    turinglike("study", "new", "trials", "-o", study)
    if '"restart"' not in (study / "study.toml").read_text():
        shutil.rmtree(study)
        return
    changed(study, number=3, practice=0, reload="restart")
    with served(study) as server:
        visitor = server.visitor()
        visitor.go(visitor.post("/join"), lambda view: view.get("number") == 2)
        view = visitor.post("/now", loaded=True)
        visitor.go(view, lambda view: view.get("number") == 2)
        cookies["restarted"] = {"half": visitor.headers["cookie"]}
        server.kill()
    changed(study, reload="resume")  # newer versions have no "restart"


def make_studies_of_talks(cookies: Cookies) -> None:
    """``talks``: of people; one is over, of one somebody left, one is half-way. ``bots``: bursts with a machine, one
    of whose messages is withdrawn, and which fails once."""
    study = Path("studies/talks")
    row = {"id": "talk", "task": "conversation", "exchanges": 4, "topic": "music", "who_starts": "A"}
    write_rows("talks.jsonl", [row | {"mode": "ping-pong"}])
    write_rows("bursts.jsonl", [row | {"mode": "burst", "exchanges": 12}])
    turinglike("study", "new", "talks.jsonl", "-o", study)
    changed(study, before=[], after=[], seconds_away=3.0)
    with served(study) as server:
        people = [server.visitor() for _ in range(6)]
        for visitor in people:
            visitor.go(visitor.post("/join"))
        for first, second in (people[:2], people[2:4], people[4:]):
            meet(first, second)
            if first is people[2]:
                while first.post("/talk", after=-1)["state"] == "open":
                    time.sleep(0.2)
            else:
                converse((first, second), most=100 if first is people[0] else 2)
            if first is people[0]:
                for visitor in (first, second):
                    view = visitor.post("/now")
                    try:
                        view = visitor.answer(view, {"guess": "human", "sex": "female", "age": "30"})
                    except AssertionError:  # version 0.2.0 asks for the guess alone
                        view = visitor.answer(view, {"guess": "human"})
                    visitor.go(view)
        cookies["talks"] = {"first": people[4].headers["cookie"], "second": people[5].headers["cookie"]}
        server.kill()
    changed(study, seconds_away=45.0)
    study = Path("studies/bots")
    turinglike("study", "new", "bursts.jsonl", "-o", study)
    with models() as machines:
        changed(study, before=[], after=[], agent="argues", machines=1.0, server=f"{machines.url}/", quiet_s=0.1)
        changed(study, base=1.5, **AT_ONCE)
        with served(study) as server:
            visitor = server.visitor()
            visitor.go(visitor.post("/join"))
            for number in range(5):
                messages = visitor.post("/talk", after=-1)["messages"]
                visitor.post("/say", turn=len(messages), text=f"message {number}")
                time.sleep(2.5 if number == 3 else 0.9)
            machines.fails = True
            broken = server.visitor()
            broken.go(broken.post("/join"))
            number = len(broken.post("/talk", after=-1)["messages"])
            broken.post("/say", turn=number, text="are you there?")
            while broken.post("/talk", after=-1)["state"] == "open":
                time.sleep(0.3)
            broken.go(broken.answer(broken.post("/now"), {}))
            cookies["bots"] = {"half": visitor.headers["cookie"]}
            server.kill()
    changed(study, server="http://127.0.0.1:8001/", base=0.0)


def make_studies_of_tests(cookies: Cookies) -> None:
    """``online``: one test is over, of one somebody left, one is half-way. ``interrogation``: one is over, in which a
    message was withdrawn at its end, and one is half-way."""
    with models() as machines:
        study = Path("studies/online")
        turinglike("study", "new", "--preset", "online", "-o", study)
        changed(
            study,
            before=[],
            after=[],
            machine_argues="argues",
            machine_deceives="deceives",
            seed=5,
            base=0.0,
            server=f"{machines.url}/",
            exchanges=[2],
            verdicts="each",
            seconds_away=3.0,
            **AT_ONCE,
        )
        with served(study) as server:
            for number in range(3):
                people = {name: server.visitor() for name in ("ann", "bob")}
                for visitor in people.values():
                    visitor.go(visitor.post("/join"))
                if number == 0:
                    take_part(people)
                    for visitor in people.values():
                        visitor.go(visitor.answer(visitor.post("/now"), {}))
                elif number == 1:
                    take_part(people, lambda view: view["state"] == "open")
                    people["bob"].post("/test", version="")
                    take_part({"ann": people["ann"]}, lambda view: view["state"] == "void")
                    test = people["ann"].post("/test", version="")["test"]
                    people["ann"].post("/act", act="back", test=test, turn=0)
                    time.sleep(4)  # until neither counts as there
                else:
                    take_part(people, lambda view: view.get("turn", 0) >= 1 and view["act"] == "judge")
                    cookies["online"] = {name: visitor.headers["cookie"] for name, visitor in people.items()}
            server.kill()
        changed(study, server="http://127.0.0.1:8001/", seconds_away=45.0)
        study = Path("studies/interrogation")
        if not has_preset("interrogation"):
            return
        turinglike("study", "new", "--preset", "interrogation", "-o", study)
        codes(study)
        changed(
            study,
            before=[],
            after=[],
            machines=["deceives"],
            seed=5,
            base=3.0,
            quiet_s=0.1,
            minutes=0.08,
            server=f"{machines.url}/",
            seconds_away=3.0,
            **AT_ONCE,
        )
        with served(study) as server:
            for number in range(2):
                people = {name: server.visitor() for name in ("ann", "bob")}
                for visitor in people.values():
                    visitor.go(visitor.post("/join"))
                seen = take_part(people, lambda view: view.get("act") == "say")
                seen = {name: visitor.post("/test", version="") for name, visitor in people.items()}
                [judge] = [name for name, view in seen.items() if view["role"] == "judge"]
                about = {"act": "say", "test": seen[judge]["test"]}
                for side in (1, 2):
                    people[judge].post("/act", **about, side=side, id=f"a{side}", text=f"hello {side}")
                for name, visitor in people.items():
                    if name != judge:
                        visitor.post("/act", **about, id="b", text="hello, judge")
                cookies["interrogation"] = {name: visitor.headers["cookie"] for name, visitor in people.items()}
                if number == 0:
                    for _ in range(36):  # so that the machine's last message is under way when the clock stops
                        time.sleep(0.1)
                        people["ann"].post("/test", version="")
                        people["bob"].post("/test", version="")
                    for side in (1, 2):
                        people[judge].post("/act", **about, side=side, id=f"c{side}", text=f"once more {side}")
                    take_part(people)
                    for visitor in people.values():
                        visitor.go(visitor.answer(visitor.post("/now"), {}))
            server.kill()
        changed(study, server="http://127.0.0.1:8001/", seconds_away=45.0)


def exports(folder: Path) -> list[list[str]]:
    """The commands that write CSV and JSON of what is kept in ``folder``; they write into its folder ``out``."""
    options = {"turingtest": ["--allow-missing"]}
    commands = [
        ["export", "run", "--format", form, "-o", f"out/run.{form}", *options.get(form, [])]
        for form in ("csv", "jsonl", "turingtest", "coco-search18")
    ]
    commands.append(["trials", "run", "people", "-o", "out/trials", *DRAWN])
    commands.append(["score", "verdicts", "-o", "out/scores"])
    for study in sorted((folder / "studies").iterdir()):
        commands.append(["study", "export", f"studies/{study.name}", "-o", f"out/{study.name}", "--personal"])
    return commands


def exported(folder: Path) -> dict[str, str]:
    """The SHA-256 of each table and each file of JSON in ``out``, in which :data:`KEPT` stands for ``folder``. Left
    out of the hash is what differs each time: the values of :data:`NOW`, and the names of the runs in ``out``, which
    are drawn when a study of tests is exported and stand in its ``trials.key.csv``. Scores count to nine digits: the
    last digits of a logistic regression are the processor's."""
    drawn = [json.loads(path.read_text())["run"] for path in sorted((folder / "out").rglob("run.json"))]
    found = {}
    for path in sorted((folder / "out").rglob("*")):
        if path.is_file() and path.suffix in (".csv", ".json", ".jsonl"):
            text = NOW.sub(r'\1""', path.read_text().replace(str(folder), KEPT))
            for run in drawn:
                text = text.replace(run, "")
            if "scores" in path.parts:
                text = LONG_NUMBER.sub(lambda number: f"{float(number[0]):.9g}", text)
            found[str(path.relative_to(folder / "out"))] = hashlib.sha256(text.encode()).hexdigest()
    return found


def make_expected(folder: Path) -> None:
    """``expected.json``: what the commands of :func:`exports` write of a copy of what is kept, and their exit codes."""
    copy = folder.parent / f"{folder.name}-copy"
    shutil.copytree(folder, copy)
    for path in copy.rglob("*.json*"):
        path.write_text(path.read_text().replace(KEPT, str(copy)))
    os.chdir(copy)
    exits = {
        " ".join(command): subprocess.run([sys.executable, "-m", "serving.cli", *command]).returncode
        for command in exports(copy)
    }
    (folder / "expected.json").write_text(json.dumps(exits | exported(copy), indent=0))
    os.chdir(folder)
    shutil.rmtree(copy)


def clean(folder: Path) -> None:
    """Remove what a machine alone needs, and name the folder by :data:`KEPT`."""
    shutil.rmtree("whole")
    shutil.rmtree("judged")
    here = str(folder)
    for path in folder.rglob("*"):
        if path.name in ("lock", "README.md") or path.name.endswith(".log"):
            path.unlink()
        elif path.suffix in (".json", ".jsonl", ".csv") and here in (text := path.read_text()):
            path.write_text(text.replace(here, KEPT))
    for path in Path("studies").glob("*/study.toml"):
        path.write_text(re.sub(" +# .*$", "", path.read_text(), flags=re.M))


def main() -> None:
    folder = Path(sys.argv[-1]).resolve()
    if sys.argv[1] == "--expected":
        make_expected(folder)
        return
    folder.mkdir(parents=True)
    os.chdir(folder)
    cookies: Cookies = {}
    make_runs()
    write_rows("words.jsonl", [{"id": cue, "task": "word_association", "cue": cue} for cue in CUES])
    make_studies_of_answers(cookies)
    make_verdicts()
    make_studies_of_judges(cookies)
    make_studies_of_talks(cookies)
    make_studies_of_tests(cookies)
    Path("cookies.json").write_text(json.dumps(cookies, indent=1))
    clean(folder)
    make_expected(folder)


if __name__ == "__main__":
    main()
