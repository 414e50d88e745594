"""examples/kuberay.yaml and the image that it runs: what can be checked of both without a cluster."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CLUSTER: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "kuberay.yaml").read_text())
IMAGE = (ROOT / "Dockerfile.cuda").read_text()
PODS = [CLUSTER["spec"]["headGroupSpec"], *CLUSTER["spec"]["workerGroupSpecs"]]


def test_ray_is_that_of_the_image() -> None:
    pinned = re.search(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert CLUSTER["spec"]["rayVersion"] == pinned[1]
    assert (CLUSTER["apiVersion"], CLUSTER["kind"]) == ("ray.io/v1", "RayCluster")


@pytest.mark.parametrize("group", PODS, ids=["head", "workers"])
def test_each_pod_has_the_image_the_caches_and_the_volumes_that_it_mounts(group: dict[str, Any]) -> None:
    assert all(isinstance(value, str) for value in group["rayStartParams"].values())  # as KubeRay's CRD wants them
    pod = group["template"]["spec"]
    [container] = pod["containers"]
    assert f"-t {container['image']} " in IMAGE
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounted) == {volume["name"] for volume in pod["volumes"]}
    assert mounted["cache"] == "/cache"
    [home] = container["env"]
    assert f"{home['name']}={home['value']}" in IMAGE
    assert home["value"].startswith(mounted["cache"])
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])


def test_the_image_has_what_kuberays_probes_call() -> None:
    """wget, and the agent of Ray's dashboard, which only the extra ``default`` brings."""
    last = IMAGE.rpartition("\nFROM ")[2]
    [installed] = re.findall(r"apt-get install -y --no-install-recommends ([^&]+?)\\", last)
    assert "wget" in installed.split()
    assert "'ray[default]'" in IMAGE


def test_the_images_extras_exist_and_are_those_of_every_command() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    extras = re.search(r'ARG EXTRAS="(.*)"', IMAGE)
    assert extras is not None
    chosen = set(extras[1].split(","))
    assert chosen <= set(known)
    assert {"cloud", "judging", "parquet", "rank", "serve"} <= chosen
