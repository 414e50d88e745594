"""``turinglike fetch``, as a person runs it, against a local server that answers as the hub does."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from safetensors.numpy import save

from agents import catalogue
from serving.cli import main
from tests.helpers import fake_hub

BASE = "microsoft/git-base-coco"
LARGE = "microsoft/git-large-coco"
FILES = {
    "README.md": b"# A model",
    "config.json": b'{"model_type": "git"}',
    "preprocessor_config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": save({"a": np.zeros(2_500_000, dtype=np.uint8)}),
}
SIZE = "2.5 MB"


@pytest.fixture
def hub() -> Iterator[fake_hub.Hub]:
    with fake_hub.running() as hub:
        yield hub


@pytest.fixture
def here(tmp_path: Path) -> Iterator[fake_hub.Hub]:
    """The hub as this process sees it, for what needs no process of its own."""
    with fake_hub.running_here(tmp_path) as hub:
        yield hub


def environment(hub: fake_hub.Hub, home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    return {**kept, "HF_ENDPOINT": hub.address, "HF_HOME": str(home), **more}


def call(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "serving.cli", "fetch", *arguments]


def without_signs(text: str) -> str:
    """What a command says on stderr, without the lines that a busy machine makes it say."""
    return re.sub(r"^still downloading \(.*\)\n", "", text, flags=re.MULTILINE)


def test_what_a_person_sees(hub: fake_hub.Hub, tmp_path: Path) -> None:
    first = hub.add(BASE, FILES, card={"license": "mit"})
    second = hub.add(LARGE, FILES)
    names = ["git-base-coco,gbvs", "git-large-coco", "git-base-coco"]
    done = subprocess.run(call(*names), env=environment(hub, tmp_path), capture_output=True, text=True, check=False)
    root = tmp_path / "hub"
    one, other = (root / f"models--{name.replace('/', '--')}" for name in (BASE, LARGE))
    assert done.stdout.splitlines() == [
        f"{BASE}: {SIZE}, of which {SIZE} are to be downloaded to {root}",
        "git-base-coco",
        f"  {BASE}  revision {first}  {SIZE}  licence mit",
        f"    {one}/snapshots/{first}",
        "gbvs: nothing to fetch",
        f"{LARGE}: {SIZE}, of which {SIZE} are to be downloaded to {root}",
        "git-large-coco",
        f"  {LARGE}  revision {second}  {SIZE}  licence {catalogue.get('git-large-coco').licence}",
        f"    {other}/snapshots/{second}",
        "total: 5.0 MB in 2 checkpoints",
    ]
    assert (done.returncode, without_signs(done.stderr)) == (0, "")
    offline = environment(hub, tmp_path, HF_HUB_OFFLINE="1")
    done = subprocess.run(call("git-base-coco"), env=offline, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "git-base-coco: is on this machine; there was no network to look for a newer revision",
        ANY,
    ]
    assert (done.returncode, without_signs(done.stderr)) == (0, "")


def test_ctrl_c_ends_at_once_and_leaves_nothing_half_written(hub: fake_hub.Hub, tmp_path: Path) -> None:
    hub.add(BASE, {**FILES, "model.safetensors": save({"a": np.zeros(20_000_000, dtype=np.uint8)})})
    hub.pause = 0.01  # the whole would take minutes
    with subprocess.Popen(
        ["env", "--default-signal=INT", *call("git-base-coco")],  # a shell's background job would not hear it
        env=environment(hub, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not list(tmp_path.rglob("*.incomplete")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert not list(tmp_path.rglob("*.incomplete"))
    assert not list(tmp_path.rglob("model.safetensors"))
    assert not list(tmp_path.rglob("refs/main"))


def test_one_that_fails_does_not_keep_the_others_from_it(
    here: fake_hub.Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    here.add(BASE, FILES)
    here.add("Salesforce/blip-image-captioning-base", FILES, gated=True)
    assert main(["fetch", "git-large-coco", "blip-base", "git-base-coco"]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        f"turinglike: agent git-large-coco: {LARGE}: the hub has no such model, or HF_TOKEN may not see it",
        "turinglike: agent blip-base: Salesforce/blip-image-captioning-base: its authors ask for consent; give it on "
        "its hub page and set HF_TOKEN",
        "turinglike: for 2 of 3 agents something could not be downloaded",
    ]
    assert shown.out.splitlines()[-1] == f"total: {SIZE} in 1 checkpoint"
    assert catalogue.get("git-base-coco").make().missing() is None
    assert catalogue.get("blip-base").make().missing() is not None


def test_settings_and_variants(here: fake_hub.Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = here.add("me/tuned", FILES)
    here.add("me/tuned", {**FILES, "tokenizer.json": b"[]"})
    config = tmp_path / "agents.toml"
    config.write_text('[tuned]\nagent = "git-base-coco"\ncheckpoint = "me/tuned"\n')
    assert main(["fetch", "tuned", "--config", str(config), "--set", f"tuned.revision={old}"]) == 0
    assert f"  me/tuned  revision {old}  {SIZE}" in capsys.readouterr().out
    local = tmp_path / "hub" / "models--me--tuned" / "snapshots" / old
    assert main(["fetch", "git-base-coco", "--set", f"git-base-coco.checkpoint={local}"]) == 0
    assert f"  {local}  revision sha256:" in capsys.readouterr().out
    asked = len(here.asked)
    for path, says in [(tmp_path, f"{tmp_path} lacks config.json"), ("https://x.org/model", "are not fetched")]:
        assert main(["fetch", "git-base-coco", "--set", f"git-base-coco.checkpoint={path}"]) == 1
        assert says in capsys.readouterr().err
    assert len(here.asked) == asked
