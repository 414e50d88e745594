"""What the tests share: the plugin package in every process, a folder of odd images, bytecode, and a real, headless
Chromium (the ``playwright`` package and a Chromium, which TURINGLIKE_CHROMIUM or the path names)."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from judging.scores import svg
from serving.files import signs_of_life
from serving.generation import load_times
from serving.scheduling import local_ray, machine

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.helpers.bad_images import BadImages

CHROMIUM = os.environ.get("TURINGLIKE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PLUGIN = Path(__file__).parent / "plugin"
os.environ["PYTHONPATH"] = os.pathsep.join([str(PLUGIN), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
local_ray.set_environment()  # Ray reads it when it is imported, which vLLM does too.
# Torch's threads would look for work all the time between operations on tiny tensors, on cores that others need.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Each client of a server would read more than a hundred certificates anew. No test speaks TLS: this folder has none.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(PLUGIN)

WAITING = (
    "test_ray",
    "test_ray_start",
    "test_crash",
    "test_cli",
    "test_fetch",
    "test_projects",
    "test_set_runs",
)  # tests of processes

# A busy machine is no fault: Hypothesis counts neither the time of an example nor that of drawing it.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
signs_of_life.FIRST_SIGN = 3600.0  # and no command says that it still works
load_times.LEAST = float("inf")  # or keeps how long it has loaded
svg.FORMS = ("svg",)  # the other forms of a figure take as long as all else that `score` does; their tests ask for them

gc.disable()  # until all is imported, which is then no longer looked through

_torch = importlib.util.find_spec("torch")
if sys.dont_write_bytecode and _torch is not None and not Path(_torch.cached or "").is_file():
    # Where no bytecode is kept, each of the many processes here would compile torch and transformers anew, for 7 of the
    # 12 seconds that it takes to import them. It is kept beside the tree, and for as long as the tests run.
    _bytecode = tempfile.TemporaryDirectory(prefix="bytecode-", ignore_cleanup_errors=True)
    sys.dont_write_bytecode = False
    sys.pycache_prefix = _bytecode.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = _bytecode.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests share a process, and so do all files whose tests share a server. The slowest start first, and
    those that wait for processes, so that no worker is left alone with them at the end. Tests in Chromium are slow."""
    served = {item.path for item in items if "served" in getattr(item, "fixturenames", ())}
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.xdist_group("served" if item.path in served else str(item.path)))
    first = served | {item.path for item in items if item.path.stem in WAITING}
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, item.path not in first))


def pytest_collection_finish() -> None:
    gc.freeze()
    machine.collect_rarely()
    gc.enable()


@pytest.fixture(scope="session")
def bad_images(tmp_path_factory: pytest.TempPathFactory) -> BadImages:
    """A folder of odd and bad images, and what is to be expected of each. Not to be changed by a test."""
    from tests.helpers import bad_images

    return bad_images.make(tmp_path_factory.mktemp("bad_images"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium: install Debian's chromium or name one in TURINGLIKE_CHROMIUM")
    with playwright.sync_playwright() as started:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()
