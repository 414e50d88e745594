"""The record files of agents: lines count once they are on disk, and are read back as a plain dict would have them."""

import asyncio
import json
import os
import resource
import signal
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import StorageError
from serving.runs.resume import Maker, ResumeState
from serving.runs.store import Store
from tests.helpers.run_folders import DIGEST, failed, line, record

COLOR = "color_estimation"
MAKER = Maker("mmcq", (COLOR,), DIGEST)
LINES = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 2), st.sampled_from(["ok", "rejected", "failed"])), max_size=40
)


def positions(number: int) -> dict[tuple[str, str], int]:
    return {(COLOR, f"s{at}"): at for at in range(number)}


def write(path: Path, lines: list[tuple[int, int, str]]) -> None:
    with path.open("wb") as file:
        for number, sample, status in lines:
            row = failed(f"s{number}") if status == "failed" else record(f"s{number}", status=status)
            file.write(line({**row, "sample": sample}))


@given(LINES)
def test_the_last_line_of_a_key_counts_and_is_put_in_order(lines: list[tuple[int, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "records.jsonl"
        write(path, lines)
        state = ResumeState.read(path, positions(6), 2, MAKER, 3)  # s6, s7 are not of the set; sample 2 is not wanted
        last = {(number, sample): status for number, sample, status in lines}
        wanted = {key: status for key, status in last.items() if key[0] < 6 and key[1] < 2}
        assert state.status == wanted
        assert state.codes.items() >= {key: "bad_image" for key in wanted if wanted[key] == "failed"}.items()
        assert state.counts(3).total() == len([key for key in wanted if key[0] < 3])
        kept = [(*key, last[key]) for key in sorted(last) if key[0] < 6] + [each for each in lines if each[0] >= 6]
        assert state.is_in_order() == (kept == lines)
        state.tidy(path)
        rows = [json.loads(text) for text in path.read_text().splitlines()]
        again = ResumeState.read(path, positions(6), 3, MAKER)
    assert [(int(row["stimulus"][1:]), row["sample"], row["status"]) for row in rows] == kept
    assert again.is_in_order()


def test_lines_count_once_they_are_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"

    async def work() -> None:
        store = Store()
        store.open(path)
        writer = asyncio.create_task(store.run())
        store.put(path, b'{"a":1}\n', "ok")
        assert store.done[path].total() == 0
        await store.written()
        assert store.done[path]["ok"] == 1
        assert path.read_bytes() == b'{"a":1}\n'
        store.put(path, b'{"b":2}\n', "failed")
        await store.finish(writer)
        assert store.done[path] == {"ok": 1, "failed": 1}

    asyncio.run(work())
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_who_waits_ends_the_interval_and_shares_a_sync(tmp_path: Path) -> None:
    """With an interval of an hour nothing is on disk, unless waiting ends it."""
    path = tmp_path / "records.jsonl"
    syncs = []
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        syncs.append(descriptor)
        fsync(descriptor)

    async def work() -> None:
        store = Store(interval=3600)
        store.open(path)
        writer = asyncio.create_task(store.run())

        async def keep(number: int) -> None:
            store.put(path, b"%d\n" % number)
            await store.written()
            assert b"%d\n" % number in path.read_bytes()

        with mock.patch("os.fsync", counted):
            await asyncio.wait_for(asyncio.gather(*map(keep, range(100))), 60)
            await store.written()  # nothing waits
        assert len(syncs) == 1
        await store.finish(writer)

    asyncio.run(work())
    assert path.read_bytes() == b"".join(b"%d\n" % number for number in range(100))


def test_all_who_wait_hear_of_a_write_that_fails(tmp_path: Path) -> None:
    """The first waits for the round that fails, the second for the one after it, the third comes later."""
    path = tmp_path / "records.jsonl"

    async def work() -> None:
        store = Store()
        store.open(path)
        store.put(path, b"1\n")
        first = asyncio.create_task(store.written())
        await asyncio.sleep(0)
        path.unlink()
        flush = asyncio.create_task(store.flush())
        await asyncio.sleep(0)
        store.put(path, b"2\n")
        second = asyncio.create_task(store.written())
        results = await asyncio.wait_for(asyncio.gather(flush, first, second, return_exceptions=True), 60)
        assert [type(result) for result in results] == [StorageError] * 3
        with pytest.raises(StorageError):
            await store.written()

    asyncio.run(work())


def test_a_hanging_thread_of_the_loop_keeps_no_write_waiting(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    ended = threading.Event()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        hangs = loop.run_in_executor(None, ended.wait)
        store = Store()
        store.open(path)
        store.put(path, b'{"a":1}\n')
        try:
            async with asyncio.timeout(20):
                await store.flush()
        finally:
            ended.set()
        assert await hangs

    asyncio.run(work())
    assert path.read_bytes() == b'{"a":1}\n'


def test_a_write_that_fails_is_cut_back(tmp_path: Path) -> None:
    """A file-size limit stands in for a full disk: the write ends in the middle of a line."""
    path = tmp_path / "records.jsonl"

    async def work() -> None:
        store = Store()
        store.open(path)
        writer = asyncio.create_task(store.run())
        store.put(path, b'{"a":1}\n')
        await store.flush()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
        try:
            store.put(path, b'{"b":"' + b"x" * 100 + b'"}\n')
            with pytest.raises(StorageError, match="everything counted as done is safe"):
                await writer
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
        with pytest.raises(StorageError):
            await store.finish(writer)

    asyncio.run(work())
    assert path.read_bytes() == b'{"a":1}\n'
