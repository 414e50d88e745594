"""The native routes of a real server: records as a run writes them, bad requests that harm nobody, metrics."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from serving.cli import main
from serving.runs.records import Record
from tests.helpers import in_process

EXAMPLES = Path(__file__).parents[3] / "examples"
COLOR = {"id": "a", "task": "color_estimation"}
VOLATILE = ("run", "timing", "worker", "created", "task")


def ask(url: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers, and the body as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    about = {} if data is None else {"content-type": "application/json"}
    answer = httpx2.request("GET" if data is None else "POST", url, content=data, headers=about | headers, timeout=600)
    return answer.status_code, answer.headers, answer.json()


def row(**fields: Any) -> dict[str, Any]:
    return {"id": "w1", "task": "word_association", "cue": "tea", **fields}


@pytest.mark.parametrize("agent", ["mmcq", "git-base-coco", "null"])
def test_answers_are_those_of_a_run(
    served: str, tiny_captioner: Path, tmp_path: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {"mmcq": "color_estimation", "git-base-coco": "image_captioning", "null": "word_association"}[agent]
    if agent == "null":
        rows = [row(id=f"w{i}", cue=cue) for i, cue in enumerate(("tea", "sea", "lee"))]
    else:
        lines = map(json.loads, (EXAMPLES / "demo.jsonl").read_text().splitlines())
        rows = [one for one in lines if one["task"] == "color_estimation"][:4]
        rows = [{"id": one["id"], "task": task, "image": str(EXAMPLES / one["image"])} for one in rows]
    source = tmp_path / "set.jsonl"
    out = tmp_path / "run"
    source.write_text("".join(json.dumps(one) + "\n" for one in rows))
    command = ["generate", str(source), "--agents", agent, "--out", str(out)]
    command += ["--seed", "7", "--samples", "2", "--device", "cpu"]
    if agent == "git-base-coco":
        command += ["--set", f"git-base-coco.checkpoint={tiny_captioner}"]
    in_process.without_ray(monkeypatch)
    assert main(command) in (0, 1)
    written = [json.loads(line) for line in (out / "records" / f"{agent}.jsonl").read_text().splitlines()]
    assert len(written) == 2 * len(rows)
    for record in written:
        [stimulus] = [one for one in rows if one["id"] == record["stimulus"]]
        images = {}
        if "image" in stimulus:
            images = {"image": base64.b64encode(Path(stimulus["image"]).read_bytes()).decode()}
        bare = {name: value for name, value in stimulus.items() if name != "image"}
        body = {"agent": agent, "stimulus": bare, "images": images, "seed": 7, "sample": record["sample"]}
        status, _, answered = ask(f"{served}/answers", body)
        assert status == 200
        Record.model_validate(answered)
        if record["error"] is not None:  # the message names the file in the one and the field in the other
            assert answered["error"]["code"] == record["error"]["code"]
            continue
        if record["task"] == "image_captioning":  # its last digit may be rounded to another one in a batch of one
            scores = answered["answer"].pop("score"), record["answer"].pop("score")
            assert scores[0] == pytest.approx(scores[1], abs=2e-4)
        for key in record.keys() - VOLATILE:
            assert answered[key] == record[key], key


def test_an_upgrade_is_refused_and_not_taken_for_bad_json(served: str) -> None:
    """As some clients offer with every request; the parser would take the body for the other protocol's."""
    offered = {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABk"}
    status, _, said = ask(f"{served}/answers", {"agent": "null", "stimulus": row()}, **offered)
    assert (status, said["error"]["code"]) == (400, "bad_request")
    assert "Upgrade" in said["error"]["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({"agent": "mmcq", "stimulus": COLOR}, "images.image"),
        ({"agent": "null", "stimulus": row(cue=3)}, "stimulus.cue"),
        ({"agent": "null", "stimulus": row(task="nothing")}, "stimulus.task: must be one of color_estimation, "),
        ({"agent": "null", "stimulus": {"id": "x"}}, "stimulus.task: missing; must be one of color_estimation, "),
        ({"agent": "null", "stimulus": row(), "images": {"image": "aGFsbG8="}}, "images.image"),
    ],
)
def test_a_problem_names_the_field_as_the_request_does(served: str, body: Any, field: str) -> None:
    field, _, why = field.partition(": ")
    _, _, said = ask(f"{served}/answers", body)
    assert [one["field"] for one in said["error"]["problems"]] == [field]
    assert said["error"]["param"] == field
    assert said["error"]["message"].startswith(f"{field}: {why}")


def test_two_images_of_one_name_are_two(served: str) -> None:
    """Rows that read the same, in one batch, each with its own picture."""
    import concurrent.futures
    import io

    from PIL import Image

    def color(rgb: tuple[int, int, int]) -> list[int]:
        buffer = io.BytesIO()
        Image.new("RGB", (32, 32), rgb).save(buffer, "PNG")
        images = {"image": base64.b64encode(buffer.getvalue()).decode()}
        _, _, record = ask(
            f"{served}/answers",
            {"agent": "mmcq", "stimulus": {"id": "same", "task": "color_estimation"}, "images": images},
        )
        return [*record["answer"]["rgb"]]

    colors = [(252, 4, 4), (4, 252, 4), (4, 4, 252), (252, 252, 4)] * 6
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        for asked, found in zip(colors, pool.map(color, colors), strict=True):
            assert all(abs(one - other) < 16 for one, other in zip(asked, found, strict=True))


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/answers", b"{", 400, "bad_json"),
        ("/answers", b"[" * 1000, 400, "bad_json"),
        ("/answers", {"agent": "nobody", "stimulus": row()}, 404, "unknown_agent"),
        ("/answers", {"agent": "mmcq", "stimulus": row()}, 422, "wrong_task"),
        ("/answers", {"agent": "null", "stimulus": row(), "extra": 1}, 422, "invalid_request"),
        ("/answers", {"agent": "null", "stimulus": row(), "seed": 2**53}, 422, "invalid_request"),
        ("/answers", {"agent": "null", "stimulus": row(), "images": {"image": "é"}}, 422, "invalid_request"),
        ("/answers", {"agent": "mmcq", "stimulus": {**COLOR, "image": "/etc/passwd"}}, 422, "invalid_request"),
        ("/answers/stream", {"agent": "null", "items": []}, 422, "invalid_request"),
        ("/answers/stream", {"agent": "null", "items": [{"stimulus": row()}] * 1001}, 422, "invalid_request"),
        ("/v1/nothing", {}, 404, "not_found"),
        ("/health", {}, 405, "method_not_allowed"),
    ],
)
def test_bad_requests(served: str, path: str, body: Any, status: int, code: str) -> None:
    found, headers, said = ask(f"{served}{path}", body)
    assert (found, said["error"]["code"]) == (status, code)
    assert said["error"]["request_id"] == headers["x-request-id"]
    assert said["error"].keys() <= {"code", "message", "type", "request_id", "problems", "param"}


@pytest.mark.parametrize("path", ["/health", "/metrics", "/v1/models/null", "/"])
def test_head_is_answered_as_get_without_a_body(served: str, path: str) -> None:
    kind = httpx2.get(f"{served}{path}", timeout=600).headers["content-type"]
    answer = httpx2.head(f"{served}{path}", timeout=600)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, kind, b"")


def test_metrics_count_what_was_asked(served: str) -> None:
    def counted() -> dict[str, float]:
        lines = httpx2.get(f"{served}/metrics", timeout=600).text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    name = 'turinglike_answers_total{agent="null",status="ok"}'
    before = counted()
    for _ in range(3):
        ask(f"{served}/answers", {"agent": "null", "stimulus": row()})
    ask(f"{served}/v1/nothing/{'x' * 50}", {})
    after = counted()
    assert after[name] == before[name] + 3
    assert after['turinglike_queue{agent="null"}'] == 0
    assert after['turinglike_agent_ready{agent="mmcq"}'] == 1
    routes = {found for line in after for found in re.findall(r'route="([^"]*)"', line)}
    assert all("xxx" not in route for route in routes)


def test_bad_images_of_one_stop_the_agent_for_nobody(served: str) -> None:
    broken = {"agent": "mmcq", "stimulus": COLOR, "images": {"image": base64.b64encode(b"no image").decode()}}
    for _ in range(60):
        status, _, record = ask(f"{served}/answers", broken)
        assert (status, record["error"]["code"]) == (200, "bad_image")
    assert ask(f"{served}/ready")[2]["agents"]["mmcq"] == {"state": "ready"}
