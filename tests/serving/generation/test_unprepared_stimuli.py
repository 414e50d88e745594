"""Where nothing of a batch can be prepared, whoever asks gets records that say why, and that their schema takes."""

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agents import catalogue
from agents.contract import Agent
from agents.language.eliza import ElizaAgent
from serving import answer, open_run
from serving.cli import main
from tests.helpers import in_process

ROOT = Path(__file__).parents[3]
BROKEN = ROOT / "examples" / "images" / "broken.jpg"
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "record.schema.json").read_text()))


@pytest.fixture(autouse=True)
def _without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)


def checked(records: list[dict[str, Any]], code: str) -> list[dict[str, Any]]:
    """The records, which are failures of the ``code`` and in order."""
    assert records
    for record in records:
        SCHEMA.validate(record)
        assert (record["status"], record["error"]["code"]) == ("failed", code)
    return records


def written(run: Path) -> list[dict[str, Any]]:
    """The records of a run, as a reader takes them."""
    return [one.model_dump(mode="json", by_alias=True) for one in open_run(run)]


def at_fault(monkeypatch: pytest.MonkeyPatch, agent: type[Agent[Any]]) -> None:
    """Let the agent's author have made a mistake."""

    def prepare(self: Agent[Any], stimulus: Any) -> Any:
        return stimulus.cue + undefined  # type: ignore[name-defined]  # noqa: F821

    monkeypatch.setattr(agent, "prepare", prepare, raising=False)


def test_a_broken_picture_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "mmcq,mmcq-lab", "--image", str(BROKEN)]) == 1
    assert capsys.readouterr().out.count("failed: bad_image: ") == 2
    [record] = checked([answer("mmcq", images=BROKEN)[0].model_dump(mode="json", by_alias=True)], "bad_image")
    assert record["worker"]["batch_size"] == 1
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("a.jpg", "b.jpg"):
        shutil.copy(BROKEN, pictures / name)
    assert main(["generate", str(pictures), "--agents", "mmcq", "--out", str(tmp_path / "run")]) == 1
    assert [one["worker"]["batch_size"] for one in checked(written(tmp_path / "run"), "bad_image")] == [2, 2]


def test_a_mistake_in_prepare_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_fault(monkeypatch, ElizaAgent)
    source = tmp_path / "topics.jsonl"
    source.write_text('{"id": "t", "task": "conversation", "topic": "tea"}\n')
    assert main(["generate", str(source), "--agents", "eliza~eliza", "--out", str(tmp_path / "run")]) == 1
    checked(written(tmp_path / "run"), "prepare_failed")
    at_fault(monkeypatch, catalogue.get("echo").load_class())
    [record] = checked([answer("echo", cues="sun")[0].model_dump(mode="json", by_alias=True)], "prepare_failed")
    message = record["error"]["message"]
    assert message.startswith("NameError: name 'undefined' is not defined (test_unprepared_stimuli.py:")
