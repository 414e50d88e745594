"""What people and agents say to a server is on disk before anybody is answered, and in one folder with one writer."""

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agents.errors import IdentityError, InputError, LockedError, StorageError
from serving.files.atomic_files import lock
from serving.http.kept_records import kept_records
from serving.runs.records import problems
from serving.runs.run import Run
from serving.runs.status import print_status, status
from tests.helpers import served_here, server_process
from tests.helpers.run_folders import write_run
from tests.helpers.served_here import code, here

OPEN = "/conversations"
WORD = {"agent": "null", "stimulus": {"id": "w1", "task": "word_association", "cue": "tea"}}


def kept(out: Path, name: str) -> list[dict[str, Any]]:
    found = list(Run(out).latest(name))
    assert [problem for row in found for problem in problems(row)] == []
    return found


def said(record: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["agent"], one["text"]) for one in record["answer"]["messages"]]


def test_single_answers_are_on_disk_when_they_are_given(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def work(found: served_here.Here) -> None:
        _, record = await found.post("/answers", WORD)
        assert kept(out, "null") == [record]
        items = [{"stimulus": {"id": f"w{n}", "task": "word_association", "cue": f"cue{n}"}} for n in range(2, 6)]
        answer = await found.client.post("/answers/stream", json={"agent": "null", "items": items})
        assert len(answer.text.splitlines()) == 4
        _, chat = await found.post(
            "/v1/chat/completions",
            {
                "model": "null",
                "messages": [{"role": "user", "content": "sea"}],
                "stimulus": {"task": "word_association"},
            },
        )
        assert kept(out, "null")[-1] == chat["turinglike"]["records"][0]

    here(work, out=out)
    rows = (out / "asked.jsonl").read_bytes().splitlines()
    by_sha = {hashlib.sha256(row).hexdigest(): json.loads(row) for row in rows}
    cues = [by_sha[record["stimulus_sha256"]]["cue"] for record in kept(out, "null")]
    assert sorted(cues) == ["cue2", "cue3", "cue4", "cue5", "sea", "tea"]
    found = status(out)
    counts = found["agents"]["null"]
    assert (counts["ok"], counts["unanswered"], counts["outside"], found["complete"]) == (6, 0, 0, True)


def test_the_status_of_what_a_server_kept_names_no_command_to_ask_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    async def work(found: served_here.Here) -> None:
        await found.client.post("/answers", json=WORD)

    here(work, {"null": {"fail": "w1"}}, out=out)
    assert print_status(out) == 0
    printed = capsys.readouterr().out
    assert "told_to_fail" in printed
    assert "send these requests to the server again" in printed
    assert "--retry-failed" not in printed


def test_a_conversation_is_kept_after_each_message(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def work(found: served_here.Here) -> None:
        _, talk = await found.post(OPEN, {"agent": "null", "who_starts": "A", "who": "human:ann", "exchanges": 4})
        assert not (out / "records" / "human~null.jsonl").exists()  # nothing has been said
        for text in ("I like books.", "And tea."):
            await found.post(f"{OPEN}/{talk['id']}/messages", {"text": text})
            [record] = kept(out, "human~null")
            assert said(record)[-2] == ("human:ann", text)
        shown = (await found.client.get(f"{OPEN}/{talk['id']}")).json()["record"]
        assert (
            (record["agent"], record["answer"])
            == (shown["agent"], shown["answer"])
            == ("human:ann~null", record["answer"])
        )
        assert record["answer"]["ended_early"] is False
        await found.client.delete(f"{OPEN}/{talk['id']}")
        assert len(kept(out, "human~null")) == 1
        await found.post(OPEN, {"agent": "null", "who_starts": "A", "person": "B"})
        [record] = kept(out, "null~human")
        assert [agent for agent, _ in said(record)] == ["null"]

    here(work, out=out)


def test_a_chat_is_kept_with_what_was_said_before(tmp_path: Path) -> None:
    out = tmp_path / "out"
    messages = [
        {"role": role, "content": text} for role, text in (("user", "Hi!"), ("assistant", "Hm."), ("user", "So?"))
    ]

    async def work(found: served_here.Here) -> None:
        for upto in (1, 3):
            asked = {"model": "null", "messages": messages[:upto], "stimulus": {"task": "conversation"}}
            _, answer = await found.post("/v1/chat/completions", asked)
        [record] = kept(out, "human~null")
        reply = answer["choices"][0]["message"]["content"]
        assert said(record) == [("human", "Hi!"), ("null", "Hm."), ("human", "So?"), ("null", reply)]
        assert len((out / "records" / "human~null.jsonl").read_bytes().splitlines()) == 2
        assert len(answer["turinglike"]["records"][0]["answer"]["messages"]) == 1

    here(work, out=out)


def test_what_cannot_be_kept_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def fail(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    async def work(found: served_here.Here) -> None:
        assert (await found.post("/answers", WORD))[0] == 200
        monkeypatch.setattr(os, "write", fail)
        for _ in range(2):
            assert code(await found.post("/answers", WORD)) == (503, "not_kept")

    with pytest.raises(StorageError, match="No space left"):
        here(work, out=out)
    assert len(kept(out, "null")) == 1


def opened(out: Path, seed: int = 0, sha: str = "a") -> str:
    described = {
        "null": {
            "task": ["word_association"],
            "kind": "machine",
            "digest": sha * 64,
            "settings": {"x": sha},
            "checkpoint": None,
            "revision": None,
        }
    }
    with kept_records(out, seed, described) as records:
        return records.run


def test_a_folder_goes_on_with_the_same_agents_and_one_writer(tmp_path: Path) -> None:
    out = tmp_path / "out"
    here(lambda found: found.post("/answers", WORD), out=out)
    here(lambda found: found.post("/answers", {**WORD, "sample": 1}), out=out)
    assert [record["sample"] for record in kept(out, "null")] == [0, 1]
    assert len({record["run"] for record in kept(out, "null")}) == 1
    with pytest.raises(IdentityError, match="made from something else"):
        opened(out)
    with pytest.raises(IdentityError):
        here(lambda found: found.post("/answers", WORD), out=out, seed=8)
    with lock(out), pytest.raises(LockedError):
        opened(out)
    assert opened(tmp_path / "new") == opened(tmp_path / "new", sha="b")  # nothing was kept with the other settings


def test_other_folders_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "photographs"
    other.mkdir()
    (other / "precious.jpg").write_text("x")
    with pytest.raises(InputError, match="not empty and not a run folder"):
        opened(other)
    with pytest.raises(InputError, match="is the run of a set"):
        opened(write_run(tmp_path / "run", [], {}))


def test_a_killed_server_has_kept_all_that_it_answered(tmp_path: Path) -> None:
    """Its agent needs no process of its own, and so no Ray."""
    out = tmp_path / "out"
    with server_process.started(tmp_path, "null-one", "--out", str(out)) as server:
        server.wait_for("/ready")
        talk = server.post(OPEN, {"agent": "null-one", "who_starts": "A"})[1]
        assert server.post(f"{OPEN}/{talk['id']}/messages", {"text": "I like books."})[0] == 200
        assert server.post("/answers", {**WORD, "agent": "null-one"})[0] == 200
        assert "starting Ray" not in server.said()
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(30)
    assert said(kept(out, "human~null-one")[0])[0] == ("human", "I like books.")
    assert [record["stimulus"] for record in kept(out, "null-one")] == ["w1"]


@pytest.mark.slow
def test_a_folder_that_can_no_longer_be_written_ends_a_server_with_4(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with server_process.started(tmp_path, "null", "--out", str(out)) as server:
        server.wait_for("/ready")
        assert server.post("/answers", WORD)[0] == 200
        (out / "lock").unlink()
        assert code(server.post("/answers", {**WORD, "sample": 1})) == (503, "not_kept")
        assert server.process.wait(60) == 4
        assert "lock was removed during the run" in server.said()
        assert "Traceback" not in server.said()
    assert [record["sample"] for record in kept(out, "null")] == [0]


def test_what_says_so_is_not_kept_and_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = tmp_path / "out"
    chat = {"model": "null", "messages": [{"role": "user", "content": "### Task:\nGenerate a concise title"}]}
    items = {"agent": "null", "items": [{"stimulus": {"id": "w2", "task": "word_association", "cue": "sea"}}]}

    async def work(found: served_here.Here) -> None:
        for path, body in (("/answers", WORD), ("/answers/stream", items), ("/v1/chat/completions", chat)):
            headers = {"turinglike-not-kept": "title_generation"}
            answer = await found.client.post(path, json=body, headers=headers)
            assert answer.status_code == 200, answer.text
        assert "title" not in caplog.text
        assert caplog.messages.count("answer") == 3
        assert not (out / "asked.jsonl").exists()
        # without the header, or with an empty one, as of a chat beside the housekeeping
        for headers in ({}, {"turinglike-not-kept": ""}):
            assert (await found.client.post("/v1/chat/completions", json=chat, headers=headers)).status_code == 200
        assert len((out / "records" / "human~null.jsonl").read_bytes().splitlines()) == 2
        metrics = (await found.client.get("/metrics")).text
        assert 'turinglike_not_kept_total{agent="null"} 3.0' in metrics

    with caplog.at_level("INFO", logger="turinglike.http"):
        here(work, out=out)


@pytest.mark.parametrize("reason", ["{{TASK}}", "no", "False", "0", "two words", "x" * 200])
def test_a_header_that_is_no_reason_is_refused(reason: str, tmp_path: Path) -> None:
    async def work(found: served_here.Here) -> None:
        answer = await found.client.post("/answers", json=WORD, headers={"turinglike-not-kept": reason})
        assert answer.status_code == 422
        assert answer.json()["error"]["param"] == "Turinglike-Not-Kept"

    here(work, out=tmp_path / "out")


def test_a_conversation_cannot_be_left_out_in_part(tmp_path: Path) -> None:
    async def work(found: served_here.Here) -> None:
        answer = await found.client.post(OPEN, json={"agent": "null"}, headers={"turinglike-not-kept": "test"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_parameter")

    here(work, out=tmp_path / "out")


@pytest.mark.parametrize("reasons", [("", "title"), ("title", ""), ("title", "tags")])
def test_one_of_two_headers_is_enough(reasons: tuple[str, str], tmp_path: Path) -> None:
    async def work(found: served_here.Here) -> None:
        headers = [("turinglike-not-kept", reason) for reason in reasons]
        assert (await found.client.post("/answers", json=WORD, headers=headers)).status_code == 200

    here(work, out=tmp_path / "out")
    assert not (tmp_path / "out" / "asked.jsonl").exists()
