"""``turinglike report``: runs' answers as a folder for a browser without a server.

The page is the viewer's; its data are scripts, because a browser reads no other files of a folder on disk.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.errors import ImageError
from agents.images import Image
from serving.files.output_paths import new_folder, refuse_own_files
from serving.pages.rendering import LINK, STATIC
from serving.pages.thumbnails import thumbnail
from serving.runs.run import Run
from serving.viewer.data import Gathered, gathered

AT_ONCE = 4  # pictures that are made smaller at the same time


def write_report(paths: Sequence[Path | str], out: Path | str | None = None) -> Path:
    """Write the report of the run folders ``paths`` to the folder ``out`` (None: ``report`` in the first run); returns
    the path of its page. An earlier report is replaced. Raises InputError and StorageError."""
    runs = [Run(path) for path in paths]
    target = Path(out) if out is not None else runs[0].path / "report"
    for run in runs:
        refuse_own_files([target], run.path)
    with gathered(runs) as data:
        _write_folder(data, target)
    return target / "index.html"


def _write_folder(data: Gathered, target: Path) -> None:
    with new_folder(target, marker="viewer.txt", force=True) as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        for name in ("static", "data", "pictures"):
            (folder / name).mkdir()
        for name in page_files():
            (folder / "static" / name).write_bytes(STATIC.joinpath(name).read_bytes())
        (folder / "index.html").write_text(STATIC.joinpath("viewer.html").read_text("utf-8"), "utf-8")
        (folder / "viewer.txt").write_text("A report of Turinglike; `turinglike report` may replace this folder.\n")

        def save(number: int, image: Image) -> str | None:
            try:
                (folder / "pictures" / f"{number}.jpg").write_bytes(thumbnail(image))
            except ImageError as error:
                return str(error)
            return None

        made = {number: pool.submit(save, number, image) for number, image in enumerate(data.pictures)}
        data.write(
            lambda name, chunk: (folder / "data" / f"{name}.js").write_bytes(script(name, chunk)),
            pictures=lambda number, image: made[number].result(),
        )


def page_files() -> list[str]:
    """The names of the viewer's stylesheets and scripts, in the order in which the page loads them, and of its icon."""
    links = LINK.findall((STATIC / "viewer.html").read_text("utf-8"))
    return [style or script for style, script in links] + ["icon.svg"]


def script(name: str, chunk: bytes) -> bytes:
    """A script that hands ``chunk``, which is JSON, to the page under ``name``."""
    return b'Turinglike.take("' + name.encode() + b'",' + chunk + b");\n"
