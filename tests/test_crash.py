"""Three of the rounds of scripts/crash_test.py: the driver, a worker and the raylet are killed in the middle."""

import subprocess
from pathlib import Path
from typing import Any

import crash_test
import pytest

from serving.cli import main
from tests.helpers import in_process


@pytest.mark.parametrize(
    ("form", "victim"),
    [
        ("conversations", "driver"),
        pytest.param("batches", "worker", marks=pytest.mark.slow),
        pytest.param("continuous", "raylet", marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_resumes_to_the_same_answers(
    form: str, victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that is killed has Ray; the one beside it and the resumed one need none for the same answers."""

    def resume(call: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(call, main(call[3:]), stderr="")

    in_process.without_ray(monkeypatch)
    monkeypatch.setattr(subprocess, "run", resume)
    out = tmp_path / "undisturbed"
    resume(crash_test.command(crash_test.write_set(tmp_path, form), form, out))
    expected, _ = crash_test.answers(out, form)
    assert len(expected) == crash_test.STIMULI[form]
    outcome = crash_test.one_round(tmp_path, form, victim, 0.4, expected)
    assert outcome.broken == ""
    assert outcome.exit_code == {"driver": -9, "worker": 0, "raylet": 5}[victim]
