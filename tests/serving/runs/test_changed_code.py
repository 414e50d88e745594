"""An agent's own class that is changed between two starts of a run: its digest has the class's name alone."""

import hashlib
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.contract import Entry
from agents.errors import IdentityError
from serving.runs.opening import open_served, prepare_run
from serving.runs.run import Run
from serving.runs.run_json import run_entry

OWN = """
from agents.language.eliza import ElizaAgent


class Own(ElizaAgent):
    pass
"""
OPENED = ("generate", "serve")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "agent_of_my_own.py"
    path.write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path
    sys.modules.pop(path.stem, None)


def _described(names: tuple[str, ...] = ("own",)) -> dict[str, Any]:
    importlib.invalidate_caches()
    sys.modules.pop("agent_of_my_own", None)
    known = {
        "own": Entry("own", "agent_of_my_own:Own", ("conversation",), "mine", "me"),
        "eliza": catalogue.get("eliza"),
    }
    members = [(known[name], known[name].make()) for name in names]
    return {"~".join(names): run_entry(members, {"turns": 3} if len(names) > 1 else None)}


def _open(how: str, folder: Path, described: dict[str, Any], accept: bool = False) -> Run:
    if how == "serve":
        (folder / "served").mkdir(exist_ok=True)
        return open_served(folder / "served", 0, described, accept)
    source = folder / "set.jsonl"
    source.write_text(json.dumps({"id": "t", "task": "conversation"}) + "\n")
    (folder / "run").mkdir(exist_ok=True)
    out = folder / "run"
    return prepare_run(out, source, seed=None, samples=1, described=described, accept_changed_code=accept).run


def _begin(run: Run) -> None:
    for name in run.meta["agents"]:
        path = run.records_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("how", OPENED)
def test_a_changed_class_is_refused_unless_it_is_accepted(module: Path, tmp_path: Path, how: str) -> None:
    run = _open(how, tmp_path, _described())
    assert run.meta["agents"]["own"]["code"] == _hash(OWN)
    module.write_text(OWN + "# before the first answer\n")
    run = _open(how, tmp_path, _described())  # nothing was answered
    _begin(run)
    _open(how, tmp_path, _described())
    now = OWN + "# now it answers in another way\n"
    module.write_text(now)
    with pytest.raises(IdentityError) as refused:
        _open(how, tmp_path, _described())
    [problem] = refused.value.problems
    assert problem.field == "agents.own"
    assert "--accept-changed-code" in problem.message
    entry = _open(how, tmp_path, _described(), accept=True).meta["agents"]["own"]
    assert entry["code"] == _hash(now)
    assert entry["earlier_code"][-1] == _hash(OWN + "# before the first answer\n")
    _open(how, tmp_path, _described())  # it is the run's code now


def test_a_class_in_a_pair_is_seen_too(module: Path, tmp_path: Path) -> None:
    names = ("own", "eliza")
    run = _open("generate", tmp_path, _described(names))
    assert "code" not in run.meta["agents"]["own~eliza"]["members"]["eliza"]  # ours changes with our version
    _begin(run)
    module.write_text(OWN + "# another\n")
    with pytest.raises(IdentityError):
        _open("generate", tmp_path, _described(names))
    entry = _open("generate", tmp_path, _described(names), accept=True).meta["agents"]["own~eliza"]
    assert entry["members"]["own"]["code"] == _hash(OWN + "# another\n")


@pytest.mark.parametrize("how", OPENED)
def test_an_older_run_goes_on_and_has_the_code_from_then_on(module: Path, tmp_path: Path, how: str) -> None:
    run = _open(how, tmp_path, _described())
    _begin(run)
    del run.meta["agents"]["own"]["code"]
    run.save()
    entry = _open(how, tmp_path, _described()).meta["agents"]["own"]
    assert (entry["code"], "earlier_code" in entry) == (_hash(OWN), False)


def test_the_digest_does_not_go_by_the_code(module: Path) -> None:
    """So that what older versions began is resumed."""
    before = _described()["own"]["digest"]
    module.write_text(OWN + "# another\n")
    assert _described()["own"]["digest"] == before
