"""Workers as Ray's actors, of a Ray that these tests share: how each end is told apart, images that travel, an existing
cluster, and GPUs."""

import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as PILImage

from agents import catalogue
from agents.errors import AgentStoppedError, ClusterError
from serving.bench.bare import in_child
from serving.cli import main
from serving.scheduling.batch import PackedRequest
from serving.scheduling.cluster import Cluster
from serving.scheduling.ray_workers import RemoteWorker
from serving.scheduling.recovery import WorkerLost
from serving.scheduling.worker import WorkerSpec
from serving.sets.stimulus_row import StimulusRow
from tests.helpers import in_process, pretended_gpus

EXAMPLES = Path(__file__).parents[3] / "examples"


def request(root: str | None = None, **fields: str) -> PackedRequest:
    return PackedRequest(StimulusRow.of_line(orjson.dumps(fields), 0, root), 1)


REQUEST = request(id="w", task="word_association", cue="c")


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    """The address of a Ray, started as the command starts it."""
    cluster = Cluster()
    asyncio.run(cluster.start())
    import ray

    yield ray.get_runtime_context().gcs_address
    asyncio.run(cluster.stop())


def remote(agent: str, settings: dict[str, Any], root: str = "/", **options: Any) -> RemoteWorker:
    return RemoteWorker(WorkerSpec(catalogue.get(agent), settings, root), {"memory": 1 << 20}, {}, **options)


@pytest.mark.usefixtures("ray_address")
def test_how_a_worker_ends_is_told_apart() -> None:
    async def cause(agent: str, settings: dict[str, Any], timeout: float = 60) -> str:
        worker = remote(agent, settings)
        await worker.start(60)
        try:
            with pytest.raises(WorkerLost) as lost:
                await worker.call([REQUEST], timeout)
            return lost.value.cause
        finally:
            worker.kill()

    async def work() -> None:
        await Cluster().start()
        causes = asyncio.gather(
            cause("null", {"crash": "."}),
            cause("null-one", {"crash": "."}),
            cause("echo", {"device_error_on": "c"}),
            cause("null", {"hang": "."}, 0.5),
        )
        with pytest.raises(AgentStoppedError, match=r"not loaded within 2 s; give it more with load_timeout"):
            await remote("null", {"load_s": 60}).start(2)
        with pytest.raises(AgentStoppedError, match="null could not be loaded: told to fail while loading"):
            await remote("null", {"fail_load": True}).start(60)
        assert await causes == ["worker_died", "worker_died", "device_error", "timeout"]

    asyncio.run(work())


@pytest.mark.usefixtures("ray_address")
def test_the_text_of_an_answer_comes_before_it() -> None:
    async def work() -> None:
        await Cluster().start()
        worker = remote("echo", {"unlike": "d"})
        await worker.start(60)
        texts: list[tuple[str, bool]] = []
        batch = [request(id=cue, task="word_association", cue=cue) for cue in "abcd"]
        calling: asyncio.Task[Any]
        listeners = {place: lambda text: texts.append((text, calling.done())) for place in (1, 3)}
        calling = asyncio.create_task(worker.call(batch, 60, listeners))
        reply = await calling
        assert texts == [("b", False), ("d", False)]
        assert [packed.code for packed in reply.replies] == [None, None, None, "bad_agent"]
        alone = await worker.call(batch[:3], 60)
        assert [part[:4] for part in reply.replies[:3]] == [part[:4] for part in alone.replies]
        worker.kill()

    asyncio.run(work())


@pytest.mark.usefixtures("ray_address")
def test_images_travel_to_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    PILImage.new("RGB", (8, 8), "blue").save(path)
    names = ("a.png", "missing.png")
    # The driver has the folder, the worker does not.
    batch = [request(str(tmp_path), id=name, image=name, task="color_estimation") for name in names]

    async def work() -> None:
        await Cluster().start()
        worker = remote("mmcq", {}, "/nowhere", sends_images=True)
        await worker.start(60)
        answered, missing = (await worker.call(batch, 60)).replies
        assert answered.code is None
        assert orjson.loads(answered.content)["color"] == "blue"
        assert answered.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert missing.code == "missing_image"
        worker.kill()

    asyncio.run(work())


@pytest.mark.usefixtures("ray_address")
def test_real_agents_answer_alike_in_any_batch(tmp_path: Path) -> None:
    """Alone in this process, and in batches over Ray in another order, as users have it."""
    agents = ("mmcq", "eliza~eliza")
    found = []
    tasks = ("color_estimation", "conversation")
    rows = [json.loads(line) for line in (EXAMPLES / "demo.jsonl").read_text().splitlines()]
    rows = [row for task in tasks for row in rows if row["task"] == task and not row["id"].endswith("broken")]
    for row in rows:
        row |= {"image": str(EXAMPLES / row["image"])} if "image" in row else {}
    for number, more in enumerate((["--batch-size", "1"], ["--batch-size", "3", "--replicas", "2"])):
        random.Random(number).shuffle(rows)
        source = tmp_path / f"set{number}.jsonl"
        out = tmp_path / f"run{number}"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.MonkeyPatch.context() as patch:
            if not number:
                in_process.without_ray(patch)
            assert main(["generate", str(source), "--agents", ",".join(agents), "--out", str(out), *more]) == 0
        lines = [line for agent in agents for line in (out / "records" / f"{agent}.jsonl").read_text().splitlines()]
        records = [*map(json.loads, lines)]
        ids = [record["stimulus"] for record in records]
        assert ids == [row["id"] for task in tasks for row in rows if row["task"] == task]  # whenever each was ready
        found.append({record["stimulus"]: [record[key] for key in ("seed", "answer", "raw")] for record in records})
    assert found[0] == found[1]
    versions = json.loads((tmp_path / "run0" / "run.json").read_text())["agents"]["mmcq"]["versions"]
    assert {"numpy", "pillow"} <= versions.keys()


def test_generate_joins_a_cluster_and_leaves_it_running(tmp_path: Path, ray_address: str) -> None:
    import ray

    source = tmp_path / "set.jsonl"
    out = tmp_path / "run"
    PILImage.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    source.write_text('{"id": "a", "task": "color_estimation", "image": "a.png"}\n')
    call = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", "mmcq", "--out", str(out)]
    done = subprocess.run([*call, "--address", ray_address], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    [record] = (out / "records" / "mmcq.jsonl").read_text().splitlines()
    assert json.loads(record)["answer"]["color"] == "red"
    assert [node["Alive"] for node in ray.nodes()] == [True]


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"id": "a", "task": "word_association", "cue": "b"}\n')
    call = ["generate", str(source), "--agents", "null", "--out", str(tmp_path / "run"), "--address", "127.0.0.1:1"]
    assert main(call) == ClusterError.exit_code
    assert "turinglike: the Ray cluster at 127.0.0.1:1 cannot be reached" in capsys.readouterr().err


def test_a_stranger_without_the_token_gets_nothing(ray_address: str) -> None:
    code = (
        "import sys, ray\nray.init(address=sys.argv[1], log_to_driver=False)\nprint('inside', ray.cluster_resources())"
    )
    known = {key: value for key, value in os.environ.items() if not key.startswith("RAY_AUTH")}
    environment = known | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64, "RAY_NUM_REDIS_GET_RETRIES": "1"}
    call = [sys.executable, "-c", code, ray_address]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode != 0
    assert "inside" not in done.stdout


SMALL: dict[str, Any] = {"gib": 6}
CASES: dict[str, tuple[dict[str, dict[str, Any]], int | None]] = {
    "1": ({"a": SMALL}, 1),
    "auto": ({"a": SMALL}, None),
    "16": ({"a": SMALL}, 16),
    "pair": ({"a": {"gib": 50}, "b": {"gib": 60}}, 1),
    "packed": ({"large": {"gib": 40, "devices": 6}, "a": {"gib": 30}, "b": {"gib": 20}, "c": {"gib": 20}}, 1),
    "killed": ({"a": SMALL}, 4),
}


@pytest.mark.slow
def test_replicas_get_the_gpus_of_their_places() -> None:
    placed = dict(in_child(pretended_gpus.place_all, CASES))  # on a Ray that believes in eight GPUs of 80 GiB
    counts = {case: Counter(placed[case]["a"]) for case in ("1", "auto", "16", "killed")}
    assert {case: (len(count), set(count.values())) for case, count in counts.items()} == {
        "1": (1, {1}),
        "auto": (8, {1}),
        "16": (8, {2}),
        "killed": (4, {1}),
    }
    assert placed["pair"]["a"] != placed["pair"]["b"]  # 50 and 60 GiB
    assert placed["killed"]["a again"] == placed["killed"]["a"]
    [large], [a], [b], [c] = (placed["packed"][name] for name in ("large", "a", "b", "c"))
    six = {f"cuda:{gpu}" for gpu in large.removeprefix("cuda:").split(",")}
    assert len(six) == 6
    assert b == c  # beside the smaller
    assert {a, b} | six == {f"cuda:{gpu}" for gpu in range(pretended_gpus.GPUS)}  # none shares those of the large
