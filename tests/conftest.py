"""What the tests share: one Ray, whose workers find the plugin package too, and a folder of odd images."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bad_images import BadImages

PLUGIN = Path(__file__).parent / "plugin"
os.environ["PYTHONPATH"] = os.pathsep.join([str(PLUGIN), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """The address of the one Ray that all tests share, started as the command starts it."""
    from serving.cluster import Cluster

    cluster = Cluster()
    asyncio.run(cluster.start())
    import ray

    yield ray.get_runtime_context().gcs_address
    asyncio.run(cluster.stop())


@pytest.fixture(scope="session")
def bad_images(tmp_path_factory: pytest.TempPathFactory) -> BadImages:
    """A folder of odd and bad images, and what is to be expected of each. Not to be changed by a test."""
    import bad_images

    return bad_images.make(tmp_path_factory.mktemp("bad_images"))
