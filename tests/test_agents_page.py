"""The commands of docs/agents.md run, and print what the page says."""

import base64
import importlib
import io
import json
import re
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage

from agents.images import Image
from serving import open_run
from serving.cli import main
from tests.helpers.page_package import REPOSITORY, installed

PAGE = "agents.md"
KEY = "LAB_API_KEY"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Path]:
    """A folder with the examples, in an environment that has the page's package and a key."""
    monkeypatch.setenv(KEY, "lab-secret-1234")
    monkeypatch.delitem(sys.modules, "echo_agent", raising=False)  # tests/plugin has a module of this name
    with installed(PAGE, "echo_agent", tmp_path, monkeypatch):
        importlib.import_module("echo_agent")
        assert capsys.readouterr().out == "sun?\n"  # an example of the page prints
        yield tmp_path


@contextmanager
def service(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A service for captions: its address, and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with PILImage.open(io.BytesIO(base64.b64decode(body["image"]))) as picture:
                asked.append({"size": picture.size, "seed": body["seed"], "key": self.headers["authorization"]})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"caption": "a cup of coffee"}')

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/caption", asked
        finally:
            server.shutdown()
            serving.join()


def sessions() -> list[tuple[str, str]]:
    """The page's commands that ask agents, and what each prints."""
    page = (REPOSITORY / "docs" / PAGE).read_text("utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    text = "".join(block for language, block in blocks if not language)
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    pairs = [part.partition("\n") for part in parts]
    return [(command, printed) for command, _, printed in pairs if command.startswith("turinglike ask ")]


def test_each_command_prints_what_the_page_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = sessions()
    assert len(commands) >= 6
    with service() as (url, _):
        for command, printed in commands:
            more = ["--set", f"described.url={url}"] if " described " in command else []
            assert main([*shlex.split(command)[1:], *more]) == 0, command
            assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == printed.splitlines(), command


def test_a_service_gets_small_pictures_with_seed_and_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = folder / "pictures"
    pictures.mkdir()
    for number in range(3):
        PILImage.new("RGB", (1000, 500), (number, 0, 0)).save(pictures / f"{number}.png")
    command = ["generate", str(pictures), "--task", "caption", "--agents", "described", "--out", "run", "--here"]
    with service() as (url, asked):
        assert main([*command, "--set", f"described.url={url}"]) == 0
    records = open_run(folder / "run").of(agent="described")
    assert [record.answer.text for record in records] == ["a cup of coffee"] * 3
    assert len(asked) == 3
    assert {one["seed"] for one in asked} == {record.seed for record in records}
    assert {one["size"] for one in asked} == {(512, 256)}
    assert {one["key"] for one in asked} == {"Bearer lab-secret-1234"}
    written = "".join(file.read_text() for file in (folder / "run").rglob("*.json*"))
    assert "lab-secret-1234" not in written + "".join(capsys.readouterr())


@pytest.mark.parametrize(("url", "code"), [(None, "server_refused"), ("http://127.0.0.1:9/", "server_unreachable")])
def test_a_service_that_fails_is_a_failed_record(
    url: str | None, code: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with service(503) as (address, _):
        command = ["ask", "described", "--image", "examples/images/coffee.png", "--json"]
        assert main([*command, "--set", f"described.url={url or address}"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["error"]["code"]) == ("failed", code)


def test_without_a_key_the_agent_says_what_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(KEY)
    assert main(["ask", "described", "--image", "examples/images/coffee.png"]) == 2
    assert f"the environment variable {KEY} has no key" in capsys.readouterr().err


def test_a_picture_is_the_same_as_bytes_and_as_an_image() -> None:
    image = Image("coffee.png", root=REPOSITORY / "examples" / "images")
    assert image.pil().mode == "RGB"
    assert np.array_equal(np.asarray(image.pil()), image.decode())
