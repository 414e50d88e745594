"""Downloads, against a local server that answers the hub's own client as the hub does."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import close_session, constants
from safetensors.numpy import save

from agents import catalogue
from agents.errors import UnavailableError
from agents.models import checkpoints
from agents.models.checkpoints import PINNED
from agents.models.hub import NoNetworkError, fetch, readable
from agents.models.pretrained import PretrainedAgent, PretrainedSettings
from tests.helpers import fake_hub

NAME = "owner/captions"
WEIGHTS, OTHERS = (save({"a": np.arange(size, dtype=np.uint8)}) for size in (100_000, 100_001))
FILES = {
    ".gitattributes": b"*.safetensors lfs",
    "README.md": b"# A model",
    "config.json": b'{"model_type": "tiny"}',
    "preprocessor_config.json": b"{}",
    "vocab.txt": b"[PAD]\na",
    "chat_template.jinja": b"{{ text }}",
    "model.safetensors": WEIGHTS,
    "model.fp16.safetensors": WEIGHTS[:-2],
    "consolidated.safetensors": WEIGHTS[:-3],
    "pytorch_model.bin": WEIGHTS[:-1],
    "pytorch_model.bin.index.json": b'{"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}',
    "tf_model.h5": b"h5",
    "flax_model.msgpack": b"flax",
    "modeling_tiny.py": b"raise SystemExit",
    "onnx/model.onnx": b"onnx",
    "onnx/config.json": b"{}",
}
READ = {"README.md", "config.json", "preprocessor_config.json", "vocab.txt", "chat_template.jinja", "model.safetensors"}


class Tiny(PretrainedAgent[PretrainedSettings]):
    tasks = ("image_captioning",)
    Settings = PretrainedSettings
    model_types = ("tiny",)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[fake_hub.Hub]:
    with fake_hub.running_here(tmp_path) as hub:
        yield hub


def tiny(**settings: str) -> Tiny:
    return Tiny(PretrainedSettings(checkpoint=NAME, **settings), "tiny")


def test_the_files_that_are_read_are_brought_once(hub: fake_hub.Hub, caplog: pytest.LogCaptureFixture) -> None:
    commit = hub.add(NAME, FILES, card={"license": "other", "license_name": "llama2"})
    caplog.set_level(logging.INFO, "turinglike.fetch")
    found = fetch(NAME)
    assert hub.files_asked() | hub.files_asked("HEAD") == READ
    assert {file.name: file.read_bytes() for file in found.path.iterdir()} == {name: FILES[name] for name in READ}
    assert (found.name, found.revision, found.licence) == (NAME, commit, "llama2")
    assert found.size == sum(len(FILES[name]) for name in READ)
    whole = readable(found.size)
    assert f"{NAME}: {whole}, of which {whole} are to be downloaded" in caplog.text
    assert checkpoints.find(NAME) == found.path
    assert checkpoints.identity(NAME) == (NAME, commit)
    hub.asked.clear()
    assert fetch(NAME) == found
    assert not hub.files_asked()
    assert "of which 0 bytes are to be downloaded" in caplog.text


SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (SHARDS, 3),
        (["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json", "training_args.bin", "optimizer.pt"], 2),
        (["open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors"], 1),
        (["open_clip_pytorch_model.bin", "open_clip_config.json"], 2),
        (["model.safetensors", "model.fp16-00001-of-00002.safetensors", "adapter_model.safetensors"], 1),
        (["checkpoint.pt", "optimizer.pt"], 1),
        (["pytorch_model.bin", "checkpoint.pt"], 1),
        (["merges.txt", "tokenizer.model", "a/config.json", "b/model.safetensors", "pytorch_model.bin.py"], 2),
    ],
)
def test_which_files_are_brought(names: list[str], kept: int, hub: fake_hub.Hub) -> None:
    hub.add(NAME, dict.fromkeys(["config.json", *names], b"{}"))
    found = fetch(NAME)
    assert {file.name for file in found.path.iterdir()} == {"config.json", *names[:kept]}


def test_an_agent_of_three_checkpoints_has_them_all_fetched(hub: fake_hub.Hub) -> None:
    agent = catalogue.get("openflamingo-4b").make()
    files = {
        **dict.fromkeys(["pytorch_model.bin", "tokenizer.json"], b"x"),
        "config.json": b'{"model_type": "gpt_neox"}',
    }
    commits = [
        hub.add(agent.settings.checkpoint, {"README.md": b"# A model", "checkpoint.pt": WEIGHTS}),
        hub.add(agent.settings.clip, {"config.json": b"{}", "model.safetensors": WEIGHTS}),
        hub.add(agent.settings.language_model, files),
    ]
    assert f"{agent.settings.checkpoint} is not on this machine: run `turinglike fetch openflamingo-4b`" in str(
        agent.missing()
    )
    found = agent.fetch()
    assert [one.revision for one in found] == commits
    assert hub.files_asked() == {"README.md", "checkpoint.pt", "config.json", "model.safetensors", *files}
    assert agent.missing() is None
    assert [word.rpartition("@")[2] for word in str(agent.checkpoint()[1]).split()] == commits


def test_a_connection_that_breaks_off_leaves_nothing_that_counts(hub: fake_hub.Hub) -> None:
    hub.add(NAME, FILES)
    hub.cut["model.safetensors"] = len(WEIGHTS) // 2
    agent = tiny()
    with pytest.raises(
        UnavailableError, match=rf"^{NAME} could not be downloaded: .*; what is complete is kept, fetch it"
    ):
        agent.fetch()
    assert agent.missing() == (
        f"{NAME} is not on this machine: run `turinglike fetch tiny` where there is a network, or give a local copy "
        "by the setting tiny.checkpoint=PATH (--set)"
    )
    assert not list(Path(constants.HF_HUB_CACHE).rglob("*.incomplete"))
    hub.cut.clear()
    agent.fetch()
    assert agent.missing() is None
    assert (agent.folder() / "model.safetensors").read_bytes() == WEIGHTS


def test_an_update_that_breaks_off_leaves_the_old_revision_in_use(hub: fake_hub.Hub) -> None:
    old = hub.add(NAME, FILES)
    agent = tiny()
    agent.fetch()
    new = hub.add(NAME, {**FILES, "vocab.txt": b"new", "model.safetensors": OTHERS})
    hub.cut["model.safetensors"] = 1000
    with pytest.raises(UnavailableError, match="could not be downloaded"):
        agent.fetch()
    assert agent.missing() is None
    assert agent.checkpoint() == (NAME, old)
    hub.cut.clear()
    agent.fetch()
    assert agent.checkpoint() == (NAME, new)
    assert checkpoints.identity(NAME, old) == (NAME, old)


def test_a_published_checkpoint_is_taken_at_its_pinned_commit_whatever_came_later(
    hub: fake_hub.Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "openai-community/gpt2"
    pinned = PINNED["openai-community/gpt2"]
    assert hub.add(name, FILES) == pinned
    later = hub.add(name, {**FILES, "vocab.txt": b"new"})
    assert fetch(name).revision == pinned == checkpoints.find(name).name == checkpoints.identity(name)[1]
    assert fetch(name, "main").revision == later
    assert checkpoints.find(name).name == pinned
    hub.models[name].branches[pinned] = later  # the hub gives something else
    with pytest.raises(UnavailableError, match=f"asked for commit {pinned}, the hub gave {later}"):
        fetch(name)


def test_the_pinned_commits_are_of_agents_that_there_are() -> None:
    used = {entry.make().settings.model_dump().get("checkpoint") for entry in catalogue.entries().values()}
    assert PINNED.keys() <= used | {"sentence-transformers/all-MiniLM-L6-v2"}
    assert all(checkpoints.COMMIT.fullmatch(commit) for commit in PINNED.values())


def test_the_hubs_refusals_are_sentences(hub: fake_hub.Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("owner/private", FILES, token="hf_right")
    hub.add(NAME, {"README.md": b""})
    for name, revision, needs, message in [
        ("owner/private", None, (), "owner/private: the hub has no such model, or HF_TOKEN may not see it"),
        (NAME, "v9", (), f"{NAME}: the hub has no revision 'v9'"),
        (NAME, None, ["config.json"], f"{NAME}: the hub's model lacks config.json"),
    ]:
        with pytest.raises(UnavailableError) as caught:
            fetch(name, revision, needs)
        assert str(caught.value) == message
        with pytest.raises(UnavailableError, match="is not on this machine"):
            checkpoints.find(name, revision)
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert fetch("owner/private").path.is_dir()


def test_a_model_of_another_kind_is_refused_after_its_download(hub: fake_hub.Hub) -> None:
    hub.add(NAME, {**FILES, "config.json": b'{"model_type": "other"}'})
    with pytest.raises(UnavailableError, match="holds a model of type 'other', not 'tiny'"):
        tiny().fetch()


def test_without_a_network_there_is_one_sentence(hub: fake_hub.Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", f"http://{closed}")
    with pytest.raises(NoNetworkError, match=rf"^{NAME}: http://{closed} cannot be reached: .*refused$"):
        fetch(NAME)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    close_session()
    with pytest.raises(NoNetworkError, match=rf"^{NAME}: .* cannot be reached: .*offline mode.*"):
        fetch(NAME)
