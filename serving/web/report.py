"""The report: runs' answers as a folder for a browser without a server; chunks of data are scripts."""

import base64
import io
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from agents.errors import ImageError
from agents.images import Image
from serving.runs.output_paths import new_folder, refuse_own_files
from serving.runs.run import Run
from serving.web.viewer_data import Gathered, gathered

SIDE = 640  # pixels: the longer side of a picture in a report
AT_ONCE = 4  # pictures that are made smaller at the same time
STATIC = Path(__file__).with_name("static")
LIMIT = 5_000  # characters of a text that a page shows
LINK = re.compile(r'<link rel="stylesheet" href="static/([\w.]+)">|<script(?: defer)? src="static/([\w.]+)"></script>')
ICON = '<link rel="icon" href="static/icon.svg" type="image/svg+xml">\n'
# Control characters, and those that turn round the letters of all that follows (U+202A to U+202E, U+2066 to U+2069).
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def write_report(paths: Sequence[Path | str], out: Path | str | None = None) -> Path:
    """Write the report of the run folders ``paths``; returns its page's path. Raises InputError and StorageError.

    ``out`` is by default ``report`` in the first run."""
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
    """The viewer's stylesheets and scripts in loading order."""
    links = LINK.findall((STATIC / "viewer.html").read_text("utf-8"))
    return [style or script for style, script in links] + ["icon.svg"]


def script(name: str, chunk: bytes) -> bytes:
    """A chunk of data as a script; its objects have fixed keys."""
    return b'Turinglike.take("' + name.encode() + b'",' + chunk + b");\n"


def thumbnail(image: Image, side: int = SIDE) -> bytes:
    """The image as a JPEG of at most ``side`` pixels. Raises ImageError."""
    from PIL import Image as PILImage

    pixels = PILImage.fromarray(image.decode())
    pixels.thumbnail((side, side), PILImage.Resampling.LANCZOS, reducing_gap=3.0)
    buffer = io.BytesIO()
    pixels.save(buffer, "JPEG", quality=80, optimize=True)
    return buffer.getvalue()


def render(package: str, name: str, **values: Any) -> str:
    return _environment(package).get_template(name).render(values)


@cache
def _environment(package: str) -> Environment:
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("serving.web")])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup(
        resources.files("serving.web").joinpath("static", "style.css").read_text("utf-8")
    )
    return environment


def printed(value: Any) -> Any:
    """A value for pages: None as a dash, floats to three digits, long texts cut."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return "< 0.0001" if 0 < value < 0.0001 else f"{value:.3g}"
    if isinstance(value, str) and not isinstance(value, Markup):
        text = _UNPRINTABLE.sub("\ufffd", value[:LIMIT])
        return text if len(value) <= LIMIT else f"{text}… ({len(value) - LIMIT:,} more characters)"
    return value


def with_files_inside(page: str, folders: Sequence[Path]) -> tuple[str, str]:
    """A page with styles and scripts inlined, and the scripts' hashes for script-src."""
    hashes = []

    def inside(link: re.Match[str]) -> str:
        name = link[1] or link[2]
        text = next(folder / name for folder in folders if (folder / name).is_file()).read_text("utf-8")
        if link[1]:
            return f"<style>{text}</style>"
        hashes.append(f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'")
        return f"<script>{text}</script>"

    return LINK.sub(inside, page).replace(ICON, ""), " ".join(hashes)
