"""Every captioner and detector over the example photographs, through the command."""

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers import device_cases, in_process

EXAMPLES = Path(__file__).parents[1] / "examples"
TASKS = {"image_captioning", "object_detection"}  # each with ten stimuli


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:torch.jit", "ignore::UserWarning:torch.functional"
)  # detectron2
def test_a_run_of_all_has_each_answer_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [entry for entry in device_cases.here().values() if entry.agent.startswith("agents.vision.")]
    able = [entry for entry in ours if TASKS.intersection(entry.tasks) and device_cases.lacks(entry) is None]
    chosen = list({entry.agent: entry for entry in able}.values())
    command = ["generate", str(EXAMPLES / "vision.jsonl"), "--out", str(tmp_path / "run"), "--agents"]
    command += [",".join(entry.name for entry in chosen), "--set", "llava-v1.6-mistral-7b.reject=[]"]
    for entry in chosen:
        for field, value in device_cases.settings(entry, tmp_path / entry.name, ExitStack()).items():
            command += ["--set", f"{entry.name}.{field}={json.dumps(value)}"]
    in_process.without_ray(monkeypatch)
    assert main([*command, "--batch-size", "4", "--replicas", "1"]) == 1  # the broken photograph
    files = (tmp_path / "run" / "records").iterdir()
    records = [json.loads(line) for path in files for line in path.read_bytes().splitlines()]
    keys = Counter((record["agent"], record["stimulus"], record["sample"]) for record in records)
    assert len(keys) == sum(10 * len(TASKS.intersection(entry.tasks)) for entry in chosen)
    assert set(keys.values()) == {1}
    failed = {(record["stimulus"], record["error"]["code"]) for record in records if record["status"] == "failed"}
    assert failed == {("caption/broken", "bad_image"), ("objects/broken", "bad_image")}
    agents = json.loads((tmp_path / "run" / "run.json").read_bytes())["agents"]
    assert [about["provenance"].get("random_weights") for about in agents.values()] == [True] * len(chosen)
