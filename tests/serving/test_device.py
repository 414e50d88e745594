"""``--device cuda`` where there is no GPU: refused in a sentence before Ray is started, by each command that has it."""

from pathlib import Path

import pytest

from serving.cli import main
from serving.scheduling import machine
from serving.scheduling.cluster import Cluster

ROWS = Path(__file__).parents[2] / "examples" / "words.jsonl"
CALLS = {
    "generate": ["generate", str(ROWS), "--agents", "eliza", "--replicas", "1", "-o", "run"],
    "serve": ["serve", "--agents", "eliza", "--port", "18999"],
    "bench": ["bench", "eliza"],
    "ask": ["ask", "eliza", "--message", "Hello"],
}


@pytest.mark.parametrize("command", CALLS)
def test_a_gpu_that_is_not_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "may_have_gpu", lambda: False)

    def start(*anything: object) -> None:
        raise AssertionError("Ray was started")

    monkeypatch.setattr(Cluster, "start", start)
    assert main([*CALLS[command], "--device", "cuda"]) == 2
    assert "device cuda: there is no GPU here" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_a_cluster_elsewhere_may_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "may_have_gpu", lambda: False)
    machine.check_device("cuda", "10.0.0.1:6379")
    machine.check_device("auto", None)
