"""Workers as Ray's actors: how each way to end is told apart, and images that travel."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from PIL import Image as PILImage

from agents import catalogue
from agents.errors import AgentStoppedError
from serving.scheduling.cluster import Cluster
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.ray_workers import RemoteWorker, probe_for
from serving.scheduling.recovery import WorkerLost
from serving.scheduling.worker import PackedRequest, WorkerSpec

REQUEST: PackedRequest = (b'{"id": "w", "task": "word_association", "cue": "c"}', None, 1, 0, 0, None)


def remote(agent: str, settings: dict[str, Any]) -> RemoteWorker:
    entry = catalogue.get(agent)
    spec = WorkerSpec(entry, settings, "/")
    return RemoteWorker(spec, {"memory": 1 << 20}, entry.make(settings).continuous(), {})


@pytest.mark.usefixtures("ray_address")
def test_how_a_worker_ends_is_told_apart() -> None:
    async def cause(agent: str, settings: dict[str, Any], timeout: float) -> str:
        worker = remote(agent, settings)
        await worker.start(60)
        try:
            with pytest.raises(WorkerLost) as lost:
                await worker.call([REQUEST], timeout)
            return lost.value.cause
        finally:
            worker.kill()

    async def main() -> None:
        await Cluster().start()
        assert await cause("null", {"crash": "."}, 60) == "worker_died"
        assert await cause("null-one", {"crash": "."}, 60) == "worker_died"
        assert await cause("echo", {"device_error_on": "c"}, 60) == "device_error"
        assert await cause("null", {"hang": "."}, 0.5) == "timeout"

    asyncio.run(main())


@pytest.mark.usefixtures("ray_address")
def test_what_is_said_while_an_answer_is_made_is_heard_before_it() -> None:
    async def main() -> None:
        await Cluster().start()
        worker = remote("echo", {"unlike": "d"})
        await worker.start(60)
        heard: list[tuple[str, bool]] = []
        batch = [(orjson.dumps({"id": cue, "task": "word_association", "cue": cue}), *REQUEST[1:]) for cue in "abcd"]
        says = {place: lambda text: heard.append((text, calling.done())) for place in (1, 3)}
        calling = asyncio.create_task(worker.call(batch, 60, says))
        reply = await calling
        assert heard == [("b", False), ("d", False)]
        assert [code for code, *_ in reply.replies] == [None, None, None, "bad_agent"]
        alone = await worker.call(batch[:3], 60)
        assert [one[:4] for one in reply.replies[:3]] == [one[:4] for one in alone.replies]
        worker.kill()

    asyncio.run(main())


def actors(ray_address: str) -> list[psutil.Process]:
    """The processes of our actors on that Ray."""
    raylets = [
        one for one in psutil.process_iter(["cmdline"]) if f"--gcs-address={ray_address}" in (one.info["cmdline"] or ())
    ]
    found = [child for raylet in raylets for child in raylet.children() if child.status() != psutil.STATUS_ZOMBIE]
    # One that is just ending has no command line any more.
    return [child for child in found if "".join(child.cmdline()[:1]).startswith("ray::WorkerActor")]


def test_the_death_of_a_worker_with_nothing_to_do_is_noticed_and_it_is_replaced(ray_address: str) -> None:
    async def main() -> None:
        await Cluster().start()
        before = actors(ray_address)
        dispatcher = Dispatcher(catalogue.get("null").make({}), lambda number: remote("null", {}))
        await dispatcher.start()
        try:
            [worker] = [actor for actor in actors(ray_address) if actor not in before]
            worker.kill()
            async with asyncio.timeout(600):
                while dispatcher.loaded_workers:
                    await asyncio.sleep(0.01)
                while not dispatcher.loaded_workers:
                    await asyncio.sleep(0.01)
        finally:
            await dispatcher.close()

    asyncio.run(main())


@pytest.mark.usefixtures("ray_address")
def test_a_worker_that_cannot_be_loaded_says_why() -> None:
    async def main() -> None:
        await Cluster().start()
        with pytest.raises(AgentStoppedError, match="null could not be loaded: told to fail while loading"):
            await remote("null", {"fail_load": True}).start(60)
        with pytest.raises(AgentStoppedError, match=r"not loaded within 2 s; give it more with --load-timeout"):
            await remote("null", {"load_s": 60}).start(2)

    asyncio.run(main())


@pytest.mark.usefixtures("ray_address")
def test_images_travel_to_a_worker_that_does_not_see_them(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    PILImage.new("RGB", (8, 8), "blue").save(path)
    seen = probe_for(str(tmp_path), "a.png")
    assert seen is not None
    other = (seen[0], seen[1] + 1, seen[2])  # what another machine's disk would have there
    elsewhere = WorkerSpec(catalogue.get("mmcq"), {}, "/nowhere")
    rows = [orjson.dumps({"id": name, "image": name, "task": "color_estimation"}) for name in ("a.png", "missing.png")]

    async def main() -> None:
        await Cluster().start()
        worker = RemoteWorker(elsewhere, {}, False, {}, probe=other)
        await worker.start(60)
        assert not worker.shares_disk
        worker.spec = replace(elsewhere, root=str(tmp_path))  # the driver sees the folder, the worker does not
        batch: list[PackedRequest] = [(row, None, 1, 0, 0, None) for row in rows]
        reply = await worker.call(batch, 60)
        (code, answer, _, sha256, _), (missing, _, _, _, _) = reply.replies
        assert code is None
        assert orjson.loads(answer)["color"] == "blue"
        assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert missing == "missing_image"
        worker.kill()
        local = RemoteWorker(elsewhere, {}, False, {}, probe=seen)
        await local.start(60)
        assert local.shares_disk
        local.kill()

    asyncio.run(main())
