"""The report: one HTML page that shows a run, to be looked at, kept and passed on.

The page is self-contained: no script, no request to anywhere, pictures inside as small JPEGs. It is written piece by
piece into a temporary file that then takes the place of the page, so that there is a whole page or the former one.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents import __version__
from agents.errors import ImageError, InputError
from agents.images import Image
from serving.runs.atomic_files import replacing
from serving.runs.display_text import count, esc, pairs, plain_fields, said
from serving.runs.eligibility import Kind, is_asked, kind_of
from serving.runs.output_paths import refuse_irregular, refuse_own_files
from serving.runs.reader import Damage, RunFolder
from serving.web import report_html as page
from serving.web.report_alarms import Alarms
from serving.web.report_answers import Picture

PAGE_LIMIT = 50_000_000  # characters of answers on one page
SIDE = 560  # pixels: the longer side of a picture on the page
STIMULI = 20  # of one picture
CARDS = 40  # answers to one stimulus by machines, and as many by people
SAMPLES = 5  # of one agent's answers to one stimulus
_MANY = "pictures, cues or conversations"


@dataclass(slots=True)
class _Stimulus:
    row: dict[str, Any]
    cards: list[str] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    hidden: int = 0
    samples: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Section:
    """One picture, cue or conversation. ``trouble`` says why the picture cannot be shown."""

    title: str
    number: int
    image: Image | None = None
    picture: Picture | None = None
    trouble: str | None = None
    sha256: str | None = None
    stimuli: list[_Stimulus] = field(default_factory=list)
    hidden: int = 0


def write_report(path: Path | str, out: Path | str | None = None, *, max_stimuli: int = 200) -> Path:
    """Write the page of the run folder ``path`` to ``out`` (default: ``report.html`` in the folder); returns its path.

    All records are counted, and the first ``max_stimuli`` pictures, cues and conversations are shown, each with at
    most 20 stimuli. A former page is replaced, any other file is not. Raises InputError if ``path`` is no run folder
    or ``out`` may not be written over, StorageError if the page cannot be written.
    """
    folder = RunFolder(path)
    own = folder.path / "report.html"
    target = Path(out) if out is not None else own
    refuse_own_files([target], folder.path)
    refuse_irregular(target)
    if target.exists() and target.resolve() != own.resolve() and not _is_page(target):
        raise InputError(f"{target} exists and is not a report of ours; give another name")
    shown = _Shown(folder, max_stimuli)
    shown.read()
    with replacing(target) as file:
        shown.write(lambda text: file.write(text.encode("utf-8", "replace")))
    return target


def _is_page(path: Path) -> bool:
    """Whether a file begins as the page of a report does."""
    try:
        with path.open("rb") as file:
            return page.GENERATOR.encode() in file.read(4096)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


class _Shown:
    """Everything that the page says, gathered in one pass over the stimuli and one over the records."""

    def __init__(self, folder: RunFolder, limit: int) -> None:
        self.folder = folder
        self.limit = max(limit, 0)
        self.sections: dict[str, _Section] = {}
        self.places: dict[tuple[str, str], tuple[_Section, _Stimulus]] = {}
        self.tallies: dict[tuple[str, str], page.Tally] = {}
        self.failures: dict[tuple[str, str], page.Failures] = {}
        self.alarms = Alarms()
        self.damage = Damage()
        self.kinds: Counter[Kind] = Counter()
        self.total = 0
        self.room = PAGE_LIMIT
        self.full = False

    def read(self) -> None:
        for _, row in self.folder.stimuli():
            self.total += 1
            self.kinds[kind_of(row)] += 1
            self.alarms.stimulus(row)
            self._place(row)
        self._expect()
        for name in [*self.folder.agents(), *self.folder.imports()]:
            for record in self.folder.latest(name, self.damage):
                self._count(record)
                self.alarms.record(record)
                self._show(record)

    def _expect(self) -> None:
        for name, agent in self.folder.meta["agents"].items():
            samples = agent.get("samples", 1)
            asked: Counter[str] = Counter()
            for kind, number in self.kinds.items():
                asked[kind[0]] += number * is_asked(agent, kind)
            for task, number in asked.items():
                if number and isinstance(samples, int):
                    tally = page.Tally(str(agent.get("kind", "machine")), expected=number * samples)
                    self.tallies[(name, task)] = tally

    def _place(self, row: dict[str, Any]) -> None:
        """Give a stimulus its place on the page: beside those that show the same image, if there is room."""
        image = row.get("image")
        name = image if isinstance(image, str) and image else None
        key = f"image {name}" if name else f"{row.get('task')} {row.get('id')}"
        section = self.sections.get(key)
        if section is None:
            if len(self.sections) >= self.limit:
                return
            section = self.sections[key] = _Section(name or _title(row), len(self.sections) + 1)
            if name:
                self._look_at(section, name)
        if len(section.stimuli) >= STIMULI:
            section.hidden += 1
            return
        stimulus = _Stimulus(row)
        section.stimuli.append(stimulus)
        for known in (row.get("id"), row.get("benchmark_id")):  # imported answers name the benchmark's stimulus
            if isinstance(known, str):
                self.places.setdefault((str(row.get("task")), known), (section, stimulus))

    def _look_at(self, section: _Section, name: str) -> None:
        section.image = Image(name, root=self.folder.root or self.folder.path)
        try:
            header = section.image.header()
        except ImageError as error:
            section.trouble = str(error)
        else:
            section.picture = Picture(f"p{section.number}", header.width, header.height)

    def _count(self, record: Mapping[str, Any]) -> None:
        kind, task, agent = str(record["kind"]), str(record["task"]), str(record["agent"])
        people = kind == "human"
        tally = self.tallies.setdefault(("people" if people else agent, task), page.Tally(kind))
        if people:
            tally.names.add(agent)
        setattr(tally, record["status"], getattr(tally, record["status"]) + 1)
        tally.attempts += len(record["attempts"])
        if record["status"] == "failed":
            error = record["error"] or {}
            key = (agent, str(error.get("code")))
            if key in self.failures:
                self.failures[key].count += 1
            elif len(self.failures) < 200:
                self.failures[key] = page.Failures(1, record["stimulus"], str(error.get("message"))[:1000])

    def _show(self, record: Mapping[str, Any]) -> None:
        task, name = record["task"], record["stimulus"]
        if (task, name) not in self.places and not self.folder.meta.get("set"):
            self._place({"id": name, "task": task})  # imported answers alone: there is no set to go by
        if (task, name) not in self.places:
            return
        section, stimulus = self.places[(task, name)]
        people = record["kind"] == "human"
        cards = stimulus.people if people else stimulus.cards
        stimulus.samples[record["agent"]] += 1
        if len(cards) >= CARDS or stimulus.samples[record["agent"]] > SAMPLES or self.full:
            stimulus.hidden += 1
            return
        if not people and isinstance(record["stimulus_sha256"], str) and "target_image" not in stimulus.row:
            section.sha256 = section.sha256 or record["stimulus_sha256"]
        text = page.card(record, stimulus.row, section.picture)
        self.room -= len(text)
        self.full = self.room < 0
        cards.append(text)

    def write(self, put: Callable[[str], object]) -> None:
        """Write the page, a piece at a time: pictures are decoded one by one and not kept."""
        meta = self.folder.meta
        source = (meta.get("set") or {}).get("source")
        title = f"Run {meta['run']}" + (f" of {source}" if source else "")
        put(page.head(title))
        put(f"<header><h1>{esc(title, 300)}</h1>")
        for notice in self._notices():
            put(f'<div class="box-notice">{notice}</div>')
        put("</header>\n<main>\n")
        put(page.provenance(meta, datetime.now(UTC).isoformat(timespec="seconds"), __version__))
        put(page.summary(self.tallies))
        put(page.failures(self.failures))
        put(page.alarms(self.alarms.found(), self.alarms.compared()))
        put('<section aria-labelledby="answers"><h2 id="answers">Answers</h2>')
        put(self._extent())
        if len(self.sections) > 3:
            put(page.jump([section.title for section in self.sections.values()]))
        put("</section>\n")
        for section in self.sections.values():
            self._write_section(section, put)
        put('</main>\n<footer><p class="small">Made by Turinglike. The pictures are smaller copies of the stimuli; ')
        put("their licences hold for this page too.</p></footer></body></html>\n")

    def _extent(self) -> str:
        if not self.sections:
            return "<p>There is nothing to show: the run has no stimuli.</p>" if not self.total else ""
        held = sum(len(section.stimuli) for section in self.sections.values())
        if held < self.total:
            return (
                f'<div class="box-notice">Only a part is shown: {count(held, "stimulus", "stimuli")} of '
                f"{self.total:,}, with the first {count(len(self.sections), 'picture, cue or conversation', _MANY)}. "
                "The counts above are of all.</div>"
            )
        return ""

    def _write_section(self, section: _Section, put: Callable[[str], object]) -> None:
        asked = []
        for stimulus in section.stimuli:
            part = page.stimulus_heading(stimulus.row)
            cards = "".join(stimulus.cards)
            part += f'<div class="cards">{cards}</div>' if cards else '<p class="note">No agent has answered yet.</p>'
            if stimulus.people:
                part += f"<h4>{count(len(stimulus.people), 'answer')} by people</h4>"
                part += f'<div class="cards people">{"".join(stimulus.people)}</div>'
            if stimulus.hidden:
                part += f'<p class="note">{count(stimulus.hidden, "more answer")} not shown.</p>'
            asked.append(part)
        if section.hidden:
            asked.append(f'<p class="note">{count(section.hidden, "more stimulus", "more stimuli")} not shown.</p>')
        tasks = {str(stimulus.row.get("task")) for stimulus in section.stimuli}
        css = "conversation" if tasks == {"conversation"} else "other"
        put(page.section(section.number, section.title, self._picture(section), asked, css))

    def _picture(self, section: _Section) -> str:
        """The picture, or why it cannot be shown; and what the set says about it."""
        row = section.stimuli[0].row if section.stimuli else {}
        meta = row.get("meta")
        about = plain_fields({"source": row.get("source"), "source id": row.get("source_id")}, ())
        about += plain_fields(meta, ()) if isinstance(meta, dict) else []
        below = pairs(about[:30]) if about else ""
        if section.image is None:
            return below
        shown = ""
        if section.picture is not None:
            try:
                url = _data_url(section.image)
            except ImageError as error:
                section.trouble = str(error)
            else:
                shown = page.picture(section.picture, url, section.title)
                if section.sha256 is not None and section.image.sha256 != section.sha256:
                    shown += '<p class="box-notice">The file has changed since it was answered.</p>'
        if section.trouble is not None:
            shown = f'<div class="box-notice">The picture cannot be shown: {said(section.trouble, 400)}</div>'
        return shown + below

    def _notices(self) -> Iterator[str]:
        root = self.folder.root
        if root is not None and any(section.image for section in self.sections.values()) and not root.is_dir():
            yield (
                f"The pictures cannot be shown: the folder {said(root)}, where they were when the run was made, is not "
                "there. The answers below are complete."
            )
        if self.damage.lines:
            lines = count(self.damage.lines, "line")
            yield f"{lines} could not be read as records. The first: {said(self.damage.first)}"
        if self.full:
            yield "There is more text than one page can hold: some answers to the last stimuli are left out below."


def _title(row: Mapping[str, Any]) -> str:
    for name in ("cue", "topic", "id"):
        if isinstance(row.get(name), str) and row[name]:
            return str(row[name])
    return "a stimulus without a name"


def _data_url(image: Image) -> str:
    """The image as a small JPEG in a data URL. Raises ImageError."""
    from PIL import Image as PILImage

    pixels = PILImage.fromarray(image.decode())
    pixels.thumbnail((SIDE, SIDE), PILImage.Resampling.LANCZOS, reducing_gap=3.0)
    buffer = io.BytesIO()
    pixels.save(buffer, "JPEG", quality=80, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
