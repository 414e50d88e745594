"""Models as agents by their name: what they are called, what is refused, what is sent to their servers."""

import base64
import json
import re
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents import catalogue
from agents.catalogue.selection import checked_agents, resolve
from agents.errors import InputError
from judging.study.design.tables import MachineAgents
from serving.cli import main
from tests.helpers import misbehaving_server, tiny_language
from tests.helpers.task_stimuli import picture


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    tiny_language.llama(root / "Tiny Llama 1.5")
    (root / "Tiny Llama 1.5" / "README.md").write_text("---\nlicense: other\nlicense_name: tiny\n---\n# A model\n")
    tiny_language.gpt2(root / "plain")
    for name, about in {"unknown": {}, "coded": {"auto_map": {"AutoConfig": "code.Config"}}}.items():
        folder = root / name
        folder.mkdir()
        for file in (root / "Tiny Llama 1.5").iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "config.json").write_text(json.dumps({"model_type": "no_such_type", **about}))
    for name, template in {"broken": "{% for", "refusing": "{{ raise_exception('not today') }}"}.items():
        tiny_language.llama(root / name, template=template)
    (tiny_language.llama(root / "empty") / "chat_template.jinja").write_text("")
    config = json.loads((tiny_language.llama(root / "quantised") / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "no_such_method"}
    (root / "quantised" / "config.json").write_text(json.dumps(config))
    pickled = root / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text('{"model_type": "llama"}')
    (pickled / "tokenizer.json").write_text("{}")
    (pickled / "weights.pt").write_bytes(b"x")
    shutil.copytree(
        tiny_language.llama(root / "whole"), root / "converted", ignore=shutil.ignore_patterns("*.safetensors")
    )
    (root / "converted" / "model.Q4_1.GGUF").write_bytes(b"GGUF")
    return root


@pytest.mark.parametrize(
    ("typed", "name", "settings"),
    [
        ("hf:Qwen/Qwen3-VL-8B-Instruct", "hf-qwen3-vl-8b-instruct", {"checkpoint": "Qwen/Qwen3-VL-8B-Instruct"}),
        ("hf:a/B@v1", "hf-b", {"checkpoint": "a/B", "revision": "v1"}),
        ("vllm:a/B", "vllm-b", {"checkpoint": "a/B", "engine": "vllm"}),
        ("openai:gpt-5", "openai-gpt-5", {"model": "gpt-5"}),
        ("ollama:llama3.2-vision:11b", "ollama-llama3.2-vision-11b", {"key_variable": ""}),
        ("anthropic:claude-x", "anthropic-claude-x", {"key_variable": "ANTHROPIC_API_KEY"}),
        ("gemini:models/gemini-x", "gemini-gemini-x", {"key_variable": "GEMINI_API_KEY", "seed_bits": 0}),
    ],
)
def test_what_models_are_called(typed: str, name: str, settings: dict[str, object]) -> None:
    entry = catalogue.get(typed)
    assert entry.name == name
    assert entry.make().settings.model_dump().items() >= settings.items()


def test_a_folder_by_typed_and_plain_name(folders: Path) -> None:
    typed = f"hf:{folders}/Tiny Llama 1.5"
    chosen = resolve([f"{typed}~eliza"], [f"{typed}.top_p=0.5", "hf-tiny-llama-1.5.max_tokens=9"], None)
    assert chosen.names == ["hf-tiny-llama-1.5~eliza"]
    agent = checked_agents(chosen.entries, chosen.settings)["hf-tiny-llama-1.5"]
    assert (agent.settings.top_p, agent.settings.max_tokens) == (0.5, 9)
    assert chosen.entries[agent.name].tasks == ("conversation", "word_association")
    assert chosen.entries[agent.name].licence == "tiny"


def test_a_variant_of_a_model_and_two_models_of_equal_names(tmp_path: Path) -> None:
    config = tmp_path / "agents.toml"
    config.write_text('[mine]\nagent = "hf:a/Model"\ntop_p = 0.5\n["hf:b/Model"]\ntop_p = 0.25\n')
    chosen = resolve(["mine", "hf:b/Model"], [], config)
    assert {name: values["top_p"] for name, values in chosen.settings.items()} == {"mine": 0.5, "hf-model": 0.25}
    for names in (["hf:a/Model", "hf:b/Model"], ["openai:chat"]):
        with pytest.raises(InputError) as caught:
            resolve(names, [], None)
        assert f'(--config): [NAME] agent = "{names[-1]}"' in str(caught.value.problems[0])


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("plain", "has no chat template: the model was not trained to chat; to continue texts, use gpt2-completion"),
        ("unknown", "holds a model of type 'no_such_type', which transformers"),
        ("coded", "needs code of its repository for a model of type 'no_such_type', and such code is never executed"),
        ("pickled", "weights.pt is not read: save the model as safetensors"),
        ("converted", "model.Q4_1.GGUF is not read, nor what transformers makes of it: take the model's safetensors"),
        ("converted/model.Q4_1.GGUF", "is not read, nor what transformers makes of it: take the model's safetensors"),
        ("broken", "refuses every chat: unexpected 'end of template'"),
        ("refusing", "refuses every chat: not today"),
        ("empty", "has no chat template"),
        ("quantised", "weights quantised by no_such_method: Unknown quantization type"),
        ("absent", "no such file or folder"),
    ],
)
def test_what_no_folder_can_be(folder: str, says: str, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folders / "set.jsonl").write_text('{"id": "a", "task": "word_association", "cue": "dog"}\n')
    agents = ["--agents", f"hf:{folders}/{folder}"]
    assert main(["generate", str(folders / "set.jsonl"), *agents, "--out", str(folders / "run")]) == 2
    assert says in capsys.readouterr().err
    assert not (folders / "run").exists()


@pytest.mark.parametrize("typed", ["foo:x", "hf:", "openai:", "hf:.@main", "hf:https://x.org/y"])
def test_names_of_no_model(typed: str) -> None:
    with pytest.raises(InputError):
        catalogue.get(typed)


@pytest.mark.parametrize("engine", ["openai", "ollama", "anthropic", "gemini"])
def test_what_is_sent_to_servers(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, misbehaving_server.KEY)
    is_claude = engine == "anthropic"
    with misbehaving_server.running() as server:
        server.otherwise = lambda request: (
            misbehaving_server.anthropic("teal") if is_claude else misbehaving_server.answer("teal")
        )
        typed = f"{engine}:model-1"
        url = server.url.removesuffix("/v1" if is_claude else "")
        for asked in (["--cue", "dog"], ["--image", str(tmp_path / "a.png"), "--task", "color"]):
            assert main(["ask", typed, *asked, "--set", f"{typed}.base_url={url}"]) == 0
    request, pictured = server.requests
    assert request.path == ("/v1/messages" if is_claude else "/v1/chat/completions")
    assert request.body["model"] == "model-1"
    assert ("seed" in request.body) is (engine in ("openai", "ollama"))
    assert ("max_completion_tokens" in request.body) is (engine == "openai")
    headers = json.dumps(request.headers)
    assert (misbehaving_server.KEY in headers) is (engine != "ollama")
    parts = pictured.body["messages"][-1]["content"]
    data = parts[0]["source"]["data"] if is_claude else parts[1]["image_url"]["url"].partition(",")[2]
    assert base64.b64decode(data) == picture()
    assert "teal" in capsys.readouterr().out


def test_a_study_calls_a_model_as_the_server_does() -> None:
    assert MachineAgents(machine_argues="hf:./my models/Tiny Llama 1.5").machine_argues == "hf-tiny-llama-1.5"
    with pytest.raises(ValidationError, match=r"machine_argues\n.*there is no engine 'foo'"):
        MachineAgents(machine_argues="foo:x")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("generate cues.jsonl --out new --agents", 2),
        ("serve --agents", 2),
        ("ask --cue dog", 2),
        ("fetch", 1),
        ("bench", 3),
    ],
)
def test_every_command_names_the_model_that_is_not_here(
    command: str, code: int, folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paths are of the present folder; of the hub's models there are none here, nor a network."""
    (folders / "cues.jsonl").write_text('{"id": "a", "task": "word_association", "cue": "dog"}\n')
    monkeypatch.chdir(folders)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main([*command.split(), "hf:./absent"]) == 2
    assert "./absent: no such file or folder" in capsys.readouterr().err
    assert main([*command.split(), "hf:no-such/Model"]) == code
    assert "no-such/Model" in capsys.readouterr().err
    assert not (folders / "new").exists()


def test_a_folder_answers_and_its_record_names_it(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a system role, as its template says; a changed folder of the same name is another model."""
    monkeypatch.chdir(folders)
    template = folders / "Tiny Llama 1.5" / "chat_template.jinja"
    template.write_text(
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('none') }}{% endif %}" + template.read_text()
    )
    (folders / "cues.jsonl").write_text('{"id": "a", "task": "word_association", "cue": "dog"}\n')
    run = ["generate", "cues.jsonl", "--agents", "hf:./Tiny Llama 1.5", "--out", "made", "--here"]
    assert main(run) == 0
    printed = capsys.readouterr().err
    about = json.loads(Path("made", "run.json").read_text())["agents"]["hf-tiny-llama-1.5"]
    assert about["revision"].startswith("sha256:")
    assert about["provenance"]["engine"] == "transformers"
    limits = about["provenance"]["limits"]
    assert [limit.partition(":")[0] for limit in limits] == ["knows no system role", "reads no pictures"]
    assert main(["agents", "hf:./Tiny Llama 1.5"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"^name .*\nruns here +yes +\n(.+\n)*size +\d+\.\d kB +\n", listed)
    for limit in limits:
        assert f"hf-tiny-llama-1.5 {limit}\n" in printed
        assert limit in listed
    assert main([*run[:3], f"hf:{folders}/Tiny Llama 1.5", *run[4:]]) == 0  # by another path
    assert "nothing is left to answer" in capsys.readouterr().out
    template.write_text(template.read_text() + " ")
    assert main(run) == 2
    assert f"agents.hf-tiny-llama-1.5: revision was '{about['revision']}', is 'sha256:" in capsys.readouterr().err
