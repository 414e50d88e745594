"""Downloads, against a local server that answers the hub's client as the hub does."""

from __future__ import annotations

import logging
import socket
import types
from collections.abc import Iterator
from pathlib import Path

import fake_hub
import pytest
from huggingface_hub import constants, file_download, scan_cache_dir
from huggingface_hub.utils import close_session

from agents import catalogue, checkpoints
from agents.checkpoints import PINNED
from agents.errors import UnavailableError
from agents.hub import NoNetworkError, fetch, readable
from agents.pretrained import PretrainedAgent, PretrainedSettings

NAME = "owner/captions"
WEIGHTS = bytes(range(256)) * 400
FILES = {
    ".gitattributes": b"*.safetensors lfs",
    "README.md": b"# A model",
    "config.json": b'{"model_type": "tiny"}',
    "preprocessor_config.json": b"{}",
    "vocab.txt": b"[PAD]\na",
    "model.safetensors": WEIGHTS,
    "model.fp16.safetensors": WEIGHTS[:-2],
    "pytorch_model.bin": WEIGHTS[:-1],
    "tf_model.h5": b"h5",
    "modeling_tiny.py": b"raise SystemExit",
    "onnx/config.json": b"{}",
}
READ = {"config.json", "preprocessor_config.json", "vocab.txt", "model.safetensors"}


class Tiny(PretrainedAgent[PretrainedSettings]):
    tasks = ("image_captioning",)
    Settings = PretrainedSettings
    model_types = ("tiny",)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_hub.Hub]:
    with fake_hub.running() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        template = hub.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(file_download, "time", types.SimpleNamespace(sleep=lambda seconds: None))
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        yield hub
        close_session()


def tiny(**settings: str) -> Tiny:
    return Tiny(PretrainedSettings(checkpoint=NAME, **settings), "tiny")


def test_the_files_that_are_read_are_brought_once(hub: fake_hub.Hub, caplog: pytest.LogCaptureFixture) -> None:
    commit = hub.add(NAME, FILES, card={"license": "other", "license_name": "llama2"})
    caplog.set_level(logging.INFO, "turinglike.fetch")
    brought = fetch(NAME)
    assert hub.files_asked() | hub.files_asked("HEAD") == READ
    assert {file.name: file.read_bytes() for file in brought.path.iterdir()} == {name: FILES[name] for name in READ}
    assert (brought.name, brought.revision, brought.licence) == (NAME, commit, "llama2")
    assert brought.size == sum(len(FILES[name]) for name in READ)
    size = readable(brought.size)
    assert f"{NAME}: {size}, of which {size} are to be downloaded" in caplog.text
    assert checkpoints.find(NAME) == brought.path
    assert checkpoints.identity(NAME) == (NAME, commit)
    [repository] = scan_cache_dir(constants.HF_HUB_CACHE).repos  # as the hub's library sees it
    [revision] = repository.revisions
    assert (repository.repo_id, revision.commit_hash, set(revision.refs)) == (NAME, commit, {"main"})
    hub.asked.clear()
    assert fetch(NAME) == brought
    assert not hub.files_asked()
    assert "of which 0 bytes are to be downloaded" in caplog.text


SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (SHARDS, 3),
        (["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json", "training_args.bin", "optimizer.pt"], 2),
        (["open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors"], 1),
        (["model.safetensors", "model.fp16-00001-of-00002.safetensors", "adapter_model.safetensors"], 1),
        (["checkpoint.pt", "optimizer.pt"], 1),
        (["merges.txt", "tokenizer.model", "a/config.json", "b/model.safetensors", "pytorch_model.bin.py"], 2),
    ],
)
def test_which_files_are_brought(names: list[str], kept: int, hub: fake_hub.Hub) -> None:
    hub.add(NAME, dict.fromkeys(["config.json", *names], b"{}"))
    assert {file.name for file in fetch(NAME).path.iterdir()} == {"config.json", *names[:kept]}


def test_an_agent_of_three_checkpoints_has_them_all_fetched(hub: fake_hub.Hub) -> None:
    agent = catalogue.get("openflamingo-4b").make()
    texts = {"tokenizer.json": b"x", "config.json": b'{"model_type": "gpt_neox"}'}
    commits = [
        hub.add(agent.settings.checkpoint, {"checkpoint.pt": WEIGHTS}),
        hub.add(agent.settings.clip, {"config.json": b"{}", "model.safetensors": WEIGHTS}),
        hub.add(agent.settings.language_model, {**texts, "pytorch_model.bin": b"x"}),
    ]
    assert "is not on this machine: run `turinglike fetch openflamingo-4b`" in str(agent.missing())
    assert [download.revision for download in agent.fetch()] == commits
    assert agent.missing() is None
    assert [word.rpartition("@")[2] for word in str(agent.checkpoint()[1]).split()] == commits


def test_a_branch_and_a_commit(hub: fake_hub.Hub) -> None:
    old = hub.add(NAME, FILES)
    new = hub.add(NAME, {**FILES, "vocab.txt": b"new"})
    hub.models[NAME].branches["refs/pr/1"] = old
    assert fetch(NAME, "refs/pr/1").revision == checkpoints.find(NAME, "refs/pr/1").name == old
    with pytest.raises(UnavailableError, match=f"^{NAME} is not on this machine$"):
        checkpoints.find(NAME)
    assert fetch(NAME, new).revision == checkpoints.find(NAME, new).name == new


def test_a_download_that_breaks_off_leaves_the_old_revision_in_use(hub: fake_hub.Hub) -> None:
    agent = tiny()
    for content in (WEIGHTS, WEIGHTS[::-1]):
        commit = hub.add(NAME, {**FILES, "model.safetensors": content})
        hub.cut["model.safetensors"] = 1000
        before, missing = agent.checkpoint(), agent.missing()
        with pytest.raises(UnavailableError, match=r"could not be downloaded: .*; what is complete is kept, fetch it"):
            agent.fetch()
        assert (agent.checkpoint(), agent.missing()) == (before, missing)
        assert not list(Path(constants.HF_HUB_CACHE).rglob("*.incomplete"))
        hub.cut.clear()
        agent.fetch()
        assert agent.missing() is None
        assert agent.checkpoint() == (NAME, commit)


def test_a_folder_that_is_there_in_part_is_noticed_and_completed(hub: fake_hub.Hub) -> None:
    agent = tiny(revision=hub.add(NAME, FILES))
    hub.cut["vocab.txt"] = 2
    with pytest.raises(UnavailableError, match="could not be downloaded"):
        agent.fetch()
    assert "lacks config.json: run `turinglike fetch tiny`" in str(agent.missing())
    hub.cut.clear()
    agent.fetch()
    assert agent.missing() is None
    (agent.folder() / "model.safetensors").resolve().unlink()
    assert "lacks model.safetensors or" in str(agent.missing())
    agent.fetch()
    assert agent.missing() is None


def test_a_published_checkpoint_is_taken_at_its_pinned_commit(hub: fake_hub.Hub) -> None:
    name, pinned = "openai-community/gpt2", PINNED["openai-community/gpt2"]
    assert hub.add(name, FILES) == pinned
    later = hub.add(name, {**FILES, "vocab.txt": b"new"})
    assert fetch(name).revision == pinned == checkpoints.find(name).name == checkpoints.identity(name)[1]
    assert fetch(name, "main").revision == later
    assert checkpoints.find(name).name == pinned
    hub.models[name].branches[pinned] = later  # the hub gives something else
    with pytest.raises(UnavailableError, match=f"asked for commit {pinned}, the hub gave {later}"):
        fetch(name)
    used = {entry.make().settings.model_dump().get("checkpoint") for entry in catalogue.entries().values()}
    assert PINNED.keys() <= used | {"sentence-transformers/all-MiniLM-L6-v2"}


def test_refusals_are_sentences(hub: fake_hub.Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("owner/gated", FILES, gated=True)
    hub.add("owner/private", FILES, token="hf_right")
    hub.add(NAME, {**FILES, "config.json": b'{"model_type": "other"}'})
    hub.add("owner/empty", {"README.md": b""})
    for name, revision, message in [
        ("owner/gated", None, "owner/gated: its authors ask for consent"),
        ("owner/private", None, "owner/private: the hub has no such model, or HF_TOKEN may not see it"),
        (NAME, "v9", f"{NAME}: the hub has no revision 'v9'"),
        ("owner/empty", None, "owner/empty: the hub's model lacks config.json"),
    ]:
        with pytest.raises(UnavailableError, match=f"^{message}"):
            fetch(name, revision, needs=["config.json"])
        with pytest.raises(UnavailableError, match="is not on this machine"):
            checkpoints.find(name, revision)
    with pytest.raises(UnavailableError, match="holds a model of type 'other', not 'tiny'"):
        tiny().fetch()
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert fetch("owner/private").path.is_dir()


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


def test_a_local_path_is_measured(hub: fake_hub.Hub, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(WEIGHTS)
    local = fetch(str(tmp_path / "model"))
    assert (local.size, local.licence, str(local.revision)[:7]) == (len(WEIGHTS), None, "sha256:")
    assert not hub.asked
