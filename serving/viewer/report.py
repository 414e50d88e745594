"""``turinglike report``: runs' answers as a folder, or one file, for a browser without a server.

The page is the viewer's. In a folder its data are scripts, because a browser reads no other files of a folder on disk.
One file has styles, scripts, pictures and data inside.
"""

import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.errors import ImageError, InputError
from agents.images import Image
from serving.files.atomic_files import replacing
from serving.files.output_paths import make_parent, new_folder, refuse_existing, refuse_own_files
from serving.pages.rendering import LINK, STATIC, with_files_inside
from serving.pages.thumbnails import thumbnail
from serving.runs.run import Run
from serving.viewer.data import Gathered, gathered

AT_ONCE = 4  # pictures that are made smaller at the same time
MOST_PICTURES = 200_000_000  # bytes of pictures in one file: browsers open no much larger page
DATA_PLACE = "<!-- data -->"  # where the page of one file has its data: before the scripts that read them
GENERATOR = b'<meta name="generator" content="Turinglike">'  # by which a report of one file is known again


def write_report(paths: Sequence[Path | str], out: Path | str | None = None, *, single_file: bool = False) -> Path:
    """Write the report of the run folders ``paths`` to the folder ``out``, or with ``single_file`` to one HTML file of
    that name (None: ``report``, or ``report.html``, in the first run); returns the path of its page. An earlier report
    is replaced. Raises InputError and StorageError."""
    runs = [Run(path) for path in paths]
    standard = runs[0].path / ("report.html" if single_file else "report")
    target = Path(out) if out is not None else standard
    for run in runs:
        refuse_own_files([target], run.path)
    if single_file:
        _refuse_other_files(target)
        with gathered(runs) as data:
            _write_file(data, target)
        return target
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


def _write_file(data: Gathered, target: Path) -> None:
    page, hashes = with_files_inside((STATIC / "viewer.html").read_text("utf-8"), [STATIC])
    page = page.replace("script-src 'self' file:", f"script-src {hashes}")
    page = page.replace("style-src 'self' file:", "style-src 'unsafe-inline'")
    page = page.replace("img-src 'self' file: data:", "img-src data:")
    before, after = page.split(DATA_PLACE)
    room = MOST_PICTURES
    make_parent(target)
    with replacing(target) as file:

        def put(name: str, chunk: bytes) -> None:
            inside = chunk.replace(b"<", b"\\u003c")  # no tag may end the element
            file.write(b'<script type="application/json" id="data-' + name.encode() + b'">' + inside + b"</script>\n")

        def embed(number: int, image: Image) -> str | None:
            nonlocal room
            try:
                url = b'"data:image/jpeg;base64,' + base64.b64encode(thumbnail(image)) + b'"'
            except ImageError as error:
                return str(error)
            room -= len(url)
            if room < 0:
                return "one file cannot hold all pictures of this report; the report in a folder has them"
            put(f"picture-{number}", url)
            return None

        file.write(before.encode())
        data.write(put, pictures=embed)
        file.write(after.encode())


def _refuse_other_files(path: Path) -> None:
    """Raises InputError for a file that is not a report of this kind, and for what is no plain file."""
    refuse_existing([path], force=True)
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            is_report = GENERATOR in file.read(4096)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if not is_report:
        raise InputError(f"{path} exists and is not a report; give another name")


def page_files() -> list[str]:
    """The names of the viewer's stylesheets and scripts, in the order in which the page loads them, and of its icon."""
    links = LINK.findall((STATIC / "viewer.html").read_text("utf-8"))
    return [style or script for style, script in links] + ["icon.svg"]


def script(name: str, chunk: bytes) -> bytes:
    """A script that hands ``chunk``, which is JSON, to the page under ``name``."""
    return b'Turinglike.take("' + name.encode() + b'",' + chunk + b");\n"
