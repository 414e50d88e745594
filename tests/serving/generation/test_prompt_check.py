"""What is found out about agents' prompts before weights are loaded: by ``check --agents``, ``generate``, ``judge`` and
``serve``; and what a run keeps of prompts. The models are tiny, their templates of the published kinds."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.contract import Draw
from agents.errors import InputError
from agents.language.engines.transformers import TransformersEngine
from agents.language.hosts import LocalAgent
from agents.stimuli import WordStimulus
from serving.cli import main
from serving.commands.serve import check_chats
from serving.http.monitoring import ServerLog
from serving.scheduling import machine
from tests.helpers import chat_templates as kinds
from tests.helpers import in_process, mixed_images, tiny_architectures, tiny_language

TALK = {"task": "conversation", "topic": "music", "exchanges": 3}
OPENING = "(the chat begins)"
PLAIN_MESSAGES = ("min_words=1", "truncation=null", "lower_case=0", "max_tokens=8", "temperature=1")


@pytest.fixture(autouse=True)
def _without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)


def a_set(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps({"id": f"s{number}", **row}) + "\n" for number, row in enumerate(rows)))
    return path


def model(folder: Path, template: str) -> str:
    tiny_language.llama(folder / "tiny", template=template, positions=4096)
    return f"hf:{folder}/tiny"


def settings(*chosen: str) -> list[str]:
    return [part for each in chosen for part in ("--set", f"hf-tiny.{each}")]


def no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: TransformersEngine, device: str) -> None:
        raise AssertionError("weights are loaded")

    monkeypatch.setattr(TransformersEngine, "load", load)


@pytest.mark.parametrize("verb", ["check", "generate"])
@pytest.mark.parametrize(
    ("template", "chosen", "row", "says"),
    [
        (
            "BY_TURNS",
            ("program=gpt-3.5",),
            {**TALK, "who_starts": "A"},
            f'the setting hf-tiny.opening="{OPENING}" (--set)',
        ),
        (
            "BY_TURNS",
            ("program=gpt-3.5",),
            {**TALK, "who_starts": None},
            f'the setting hf-tiny.opening="{OPENING}" (--set)',
        ),
        ("WANTS_A_USER", ("program=persona",), {**TALK, "who_starts": "A"}, "message 1 of s0: the chat template"),
        (
            "BY_TURNS",
            ("program=llama-3.3",),
            {**TALK, "who_starts": "A"},
            "in a row, and other programs send none: use the setting hf-tiny.program=gpt-4o (--set)",
        ),
        ("DROPS_ALL", ("program=gpt-4o",), {**TALK, "who_starts": "B"}, "drops the instructions"),
        ("BY_TURNS", ("program=no-persona",), {**TALK, "mode": "burst", "who_starts": "A"}, "opening"),
    ],
)
def test_an_agent_whose_template_refuses_a_chat_of_the_set_is_refused_before_its_weights_load(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    template: str,
    chosen: tuple[str, ...],
    row: dict[str, Any],
    says: str,
) -> None:
    no_load(monkeypatch)
    agent = model(tmp_path, getattr(kinds, template))
    out = ["--out", str(tmp_path / "run"), "--here"] if verb == "generate" else []
    asked = [verb, str(a_set(tmp_path, row)), "--agents", f"{agent}~eliza", *settings(*chosen)]
    assert main([*asked, *out]) == 2
    said = "".join(capsys.readouterr())
    assert says in said
    assert len([line for line in said.splitlines() if "hf-tiny: message" in line]) == 1  # one sentence an agent
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("template", "chosen", "row"),
    [
        ("BY_TURNS", ("program=gpt-3.5",), {**TALK, "who_starts": "B"}),
        ("BY_TURNS", ("program=gpt-4o",), {**TALK, "who_starts": None}),
        ("BY_TURNS", ("program=gpt-3.5", f"opening={OPENING}"), {**TALK, "who_starts": None}),
        ("WANTS_A_USER", ("program=gpt-3.5",), {**TALK, "who_starts": "A", "opener": "Hello."}),
        ("INTO_THE_LAST", ("program=gpt-3.5",), {**TALK, "who_starts": None}),
        ("BY_TURNS", (), {"task": "word_association", "cue": "dog"}),
    ],
)
def test_a_chat_that_the_template_takes_is_no_problem(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    template: str,
    chosen: tuple[str, ...],
    row: dict[str, Any],
) -> None:
    no_load(monkeypatch)
    agent = model(tmp_path, getattr(kinds, template))
    name = agent if row["task"] == "word_association" else f"{agent}~eliza"
    asked = ["check", str(a_set(tmp_path, row)), "--agents", name, *settings(*chosen)]
    assert main([*asked, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["agents"]["problems"] == []
    drops = any("drops instructions" in limit for limit in report["agents"]["limits"]["hf-tiny"])
    assert drops == (template == "INTO_THE_LAST")
    assert main(asked) == 0
    assert f"hf-tiny{'' if name == agent else '~eliza'}: no problems." in capsys.readouterr().out


def test_agents_without_a_stimulus_and_unusable_ones_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(a_set(tmp_path, {"task": "word_association", "cue": "dog"}))
    assert main(["check", source, "--agents", "eliza~eliza"]) == 2
    assert "answers conversation, but the set has word_association" in capsys.readouterr().out
    assert main(["check", source, "--agents", f"hf:{tmp_path}/absent"]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    assert main(["check", source, "--set", "eliza.x=1"]) == 2
    assert "name them with --agents" in capsys.readouterr().err


def smolvlm(folder: Path) -> Path:
    """A tiny model of SmolVLM's form, whose processor needs the package num2words."""
    tiny_architectures.pictured("idefics3", folder)
    for file in folder.glob("*.json"):
        text = file.read_text()
        file.write_text(text.replace("idefics3", "smolvlm").replace("Idefics3", "SmolVLM"))
    file = folder / "processor_config.json"
    config = json.loads(file.read_text())
    config["video_processor"] = {
        **config["image_processor"],
        "video_processor_type": "SmolVLMVideoProcessor",
        "video_sampling": {"fps": 1, "max_frames": 4, "video_size": {"longest_edge": 56}},
    }
    file.write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("call", [["check"], ["generate", "--out", "run"], ["generate", "--out", "run", "--dry-run"]])
def test_a_package_that_a_processor_needs_is_told_before_weights_load(
    call: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers.models.smolvlm import processing_smolvlm

    no_load(monkeypatch)
    monkeypatch.setattr(processing_smolvlm, "num2words", None)
    monkeypatch.chdir(tmp_path)
    agent = f"hf:{smolvlm(tmp_path / 'tiny')}"
    [picture, *_] = mixed_images.make(tmp_path)
    source = str(a_set(tmp_path, {"task": "image_captioning", "image": str(picture)}))
    verb, *more = call
    assert main([verb, source, "--agents", f"{agent},mmcq" if verb == "check" else agent, *more]) == 2
    printed = capsys.readouterr()
    assert "num2words" in printed.out + printed.err
    assert "pip install num2words" in printed.out + printed.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("call", [["check"], ["generate", "--out", "run", "--dry-run"]])
def test_an_agent_for_which_there_is_no_memory_is_told(
    call: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = str(a_set(tmp_path, {"task": "conversation", "topic": "tea", "exchanges": 2}))
    verb, *more = call
    asked = [verb, source, "--agents", "eliza~eliza", *more]
    assert main(asked) == 0
    capsys.readouterr()
    monkeypatch.setattr(machine, "available", lambda: 1000)
    assert main(asked) == 2
    printed = capsys.readouterr()
    assert "eliza~eliza: too large to be loaded together: eliza needs 1 x" in printed.out + printed.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("template", "chosen"),
    [("INTO_THE_LAST", ()), ("BY_TURNS", (f"opening={OPENING}",)), ("INTO_THE_FIRST_BY_TURNS", ()), ("PLAIN", ())],
)
def test_a_conversation_that_the_agent_begins_is_held_to_its_end(
    tmp_path: Path, template: str, chosen: tuple[str, ...]
) -> None:
    agent = model(tmp_path, getattr(kinds, template))
    source = a_set(tmp_path, {**TALK, "who_starts": "A", "exchanges": 5})
    out = tmp_path / "run"
    options = settings("program=gpt-3.5", *PLAIN_MESSAGES, *chosen)
    main(["generate", str(source), "--agents", f"{agent}~eliza", "--out", str(out), "--here", *options])
    [record] = [json.loads(line) for line in (out / "records" / "hf-tiny~eliza.jsonl").read_text().splitlines()]
    assert record["status"] != "failed", record["error"]
    turns = [raw for raw in record["raw"]["turns"] if raw and "prompt_sha256" in raw]
    assert len(turns) >= 3
    run = json.loads((out / "run.json").read_text())
    first = run["agents"]["hf-tiny~eliza"]["members"]["hf-tiny"]["first_prompt"]
    assert (first["stimulus"], first["turn"]) == ("s0", 0)
    assert first["sha256"] == hashlib.sha256(first["text"].encode()).hexdigest() == turns[0]["prompt_sha256"]
    assert "never let people know that you are not human" in first["text"]
    assert (OPENING in first["text"]) == bool(chosen)
    limits = run["agents"]["hf-tiny~eliza"]["members"]["hf-tiny"]["provenance"].get("limits", [])
    assert any("drops instructions" in limit for limit in limits) == template.startswith("INTO")


def test_the_first_prompt_of_words_is_that_of_the_first_record(tmp_path: Path) -> None:
    agent = model(tmp_path, kinds.ASKS_FOR_THE_TIME)
    source = a_set(tmp_path, *({"task": "word_association", "cue": cue} for cue in ("dog", "cat")))
    out = tmp_path / "run"
    command = ["generate", str(source), "--agents", agent, "--out", str(out), "--here"]
    main(command)
    first = json.loads((out / "run.json").read_text())["agents"]["hf-tiny"]["first_prompt"]
    assert first["text"].startswith("Today is 26 July 2024.")
    records = [json.loads(line) for line in (out / "records" / "hf-tiny.jsonl").read_text().splitlines()]
    assert [record["raw"]["prompt_sha256"] == first["sha256"] for record in records] == [True, False]
    assert records[0]["raw"]["prompt_date"] == "2024-07-26"


def test_a_run_made_with_other_prompts_is_refused_in_a_sentence_and_others_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"task": "word_association", "cue": cue} for cue in ("dog", "cat")]
    for template, code in ((kinds.ASKS_FOR_THE_TIME, 2), (kinds.TAKES_A_DATE, 0)):
        folder = tmp_path / str(code)
        folder.mkdir()
        command = ["generate", "", "--agents", model(folder, template), "--out", str(folder / "run"), "--here"]
        with monkeypatch.context() as before:  # as an older version made it
            before.setattr(LocalAgent, "template_effects", lambda self: {})
            main([*command[:1], str(a_set(folder, rows[0])), *command[2:]])
        capsys.readouterr()
        again = main([*command[:1], str(a_set(folder, *rows)), *command[2:]])
        said = "".join(capsys.readouterr())
        assert ("other prompts than those of the run (date was as the template has it, is 2024-07-26)" in said) == (
            code == 2
        )
        assert (again == 2) == (code == 2)


def test_a_persons_history_is_in_no_file_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "ann.jsonl").write_text('{"speaker": "person", "text": "My secret garden."}\n')
    agent = model(tmp_path, kinds.PLAIN)
    source = a_set(tmp_path, {**TALK, "who_starts": "A"})
    out = tmp_path / "run"
    options = settings(f"person={tmp_path}/ann.jsonl", *PLAIN_MESSAGES)
    main(["generate", str(source), "--agents", f"{agent}~eliza", "--out", str(out), "--here", *options])
    run = json.loads((out / "run.json").read_text())
    assert "first_prompt" not in run["agents"]["hf-tiny~eliza"]["members"]["hf-tiny"]
    for path in out.rglob("*"):
        assert path.is_dir() or b"secret garden" not in path.read_bytes(), path


def test_a_judges_chats_are_tried_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    no_load(monkeypatch)
    word = {"question": "Who?", "answer": {"word": "cat"}, "cue": "dog", "asked": "word_association", "shown": "x"}
    row = {"task": "judgement", "id": "t1", **word}
    (tmp_path / "trials.jsonl").write_text(json.dumps(row) + "\n")
    refuses = "{% if 'cat' in messages[0]['content'] %}{{ raise_exception('no cats') }}{% endif %}" + kinds.PLAIN
    judges = ["--judges", model(tmp_path, refuses), "--out", str(tmp_path / "verdicts"), "--here"]
    assert main(["judge", str(tmp_path), *judges]) == 2
    assert "hf-tiny: t1: the chat template refuses this chat: no cats" in capsys.readouterr().err


def served(folder: Path, template: str, **chosen: Any) -> Any:
    typed = model(folder, template)
    return catalogue.get(typed).make(chosen)


def test_a_server_refuses_an_agent_that_nobody_can_talk_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ServerLog()
    for program, said in (("gpt-4o", ""), ("gpt-3.5", "hf-tiny can begin no conversation: message 1")):
        agent = served(tmp_path / program, kinds.WANTS_A_USER, program=program)
        capsys.readouterr()
        check_chats("hf-tiny", agent, log)
        assert capsys.readouterr().err.startswith(said)
    with pytest.raises(InputError) as caught:
        check_chats("hf-tiny", served(tmp_path / "other", kinds.BY_TURNS, program="llama-3.3"), log)
    assert "in a row" in str(caught.value.problems[0])


def test_servers_messages_are_hashed(tmp_path: Path) -> None:
    agent: Any = catalogue.get("openai-chat").make({"model": "m"})
    agent.open()
    stimulus = WordStimulus(id="w", task="word_association", cue="dog")
    prompt = agent.prompt(stimulus, Draw(1))
    [message] = json.loads(prompt)
    assert message["role"] == "user"
    assert "dog" in message["content"]
    about = agent._engine.about_prompt(agent.fitted_request(stimulus, Draw(1)))
    assert about == {"prompt_sha256": hashlib.sha256(prompt.encode()).hexdigest()}
