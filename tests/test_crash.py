"""Three of the rounds of scripts/crash_test.py: the driver, a worker and the raylet are killed in the middle."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import in_process
import pytest

from serving.cli import main


def load() -> ModuleType:
    path = Path(__file__).parent.parent / "scripts" / "crash_test.py"
    spec = importlib.util.spec_from_file_location("crash_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["crash_test"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("form", "victim"), [("conversations", "driver"), ("batches", "worker"), ("continuous", "raylet")]
)
def test_a_killed_run_resumes_to_the_same_answers(
    form: str, victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = load()
    with monkeypatch.context() as patched:
        in_process.without_ray(patched)
        out = tmp_path / "undisturbed"
        assert main(crash.command(crash.write_set(tmp_path, form), form, out)[3:]) == 0
    expected, _ = crash.answers(out, form)
    assert len(expected) == crash.STIMULI[form]
    outcome = crash.one_round(tmp_path, form, victim, 0.4, expected)
    assert outcome.broken == ""
    assert outcome.exit_code == {"driver": -9, "worker": 0, "raylet": 5}[victim]
