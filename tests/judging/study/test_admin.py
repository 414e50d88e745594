"""The dashboard of a study: its figures beside an export's, what the lab can do there, and where the key stays."""

from __future__ import annotations

import csv
import io
import json
import random
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.kinds import material_of
from judging.study.log.participant_events import EntryChanged
from judging.study.log.state import read_state
from judging.study.pages.page_answers import Refused
from judging.study.results.progress import curve
from judging.study.results.status import read_status
from judging.study.serving_study import ServedStudy
from serving.cli import main
from tests.helpers import online_studies, study_folders
from tests.helpers.server_process import Server
from tests.helpers.study_folders import Visitor, arrived, run, serving
from tests.helpers.watched_page import WatchedPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEY = "a-key-for-the-tests-0123"


def judged(folder: Path, **changes: Any) -> Path:
    """A study of words with seven judges: five finished, one gave two verdicts, and one declined."""
    trials = study_folders.write_trials(folder / "T", study_folders.word_trials(30, catch=20))
    values = {"number": 6, "catch": 0.34, "native": True, "before": ["native_language"], **changes}
    study = study_folders.write_study(folder / "study", trials, "word_association", consent="Yes?", **values)
    chance = random.Random(5)

    async def work(served: ServedStudy) -> None:
        for number in range(7):
            judge, _ = await served.join(None, None)
            while (step := judge.current) is not None and not (number == 5 and judge.counted(judge.step) == 2):
                said: dict[str, Any] = {}
                if step.kind == "consent":
                    said = {"agree": number != 6}
                elif step.kind == "questions":
                    said = {"native_language": "no" if number == 1 else "yes"}
                elif step.kind == "trial":
                    rt = round(chance.uniform(500, 9000), 1)
                    said = {"verdicts": [chance.choice(["human", "machine"])], "rt": rt}
                await served.answer(judge, judge.step, said)

    run(study, work)
    return study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged(tmp_path_factory.mktemp("admin"), wanted=50)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, Server]]:
    folder = study_folders.changed(judged(tmp_path), entry="links")
    with serving(folder, TURINGLIKE_API_KEY=KEY) as running:
        yield folder, running


def lab(server: Server) -> Visitor:
    return Visitor(server.port, authorization=f"Bearer {KEY}")


def test_rows_and_times_are_those_of_the_export(study: Path, tmp_path: Path) -> None:
    status = read_status(study, material_of(study))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "verdicts.csv").open() as file:
        verdicts = [row for row in csv.DictReader(file) if row["phase"] != "practice"]
    rows = {row["judge"]: row for row in status["rows"]}
    assert [row["number"] for row in status["rows"]] == [1, 2, 3, 4, 5, 6, 7]
    assert Counter(row["stage"] for row in status["rows"]) == {"finished": 5, "at it": 1, "declined": 1}
    for code, row in rows.items():
        own = [verdict for verdict in verdicts if verdict["judge"] == code]
        assert row["done"] == len(own)
        assert row["of"] == 8  # with two catch trials
        if not own:
            assert (row["seconds"], row["catch"], row["rules"]) == (None, None, [])
            continue
        assert row["seconds"] == pytest.approx(median(float(verdict["rt"]) for verdict in own) / 1000, abs=0.006)
        caught = [verdict["correct"] == "1" for verdict in own if verdict["catch"] == "1"]
        assert row["catch"] == ([sum(caught), len(caught)] if caught else None)
        excluded = [verdict["rules"] for verdict in own if verdict["rules"]]
        assert (row["excluded"], " ".join(row["rules"])) == (len(excluded), "" if not excluded else excluded[0])
    of_finished = [row["seconds"] for row in rows.values() if row["stage"] == "finished"]
    assert status["times"]["seconds"] == pytest.approx(median(of_finished), abs=0.006)
    plain = Counter(verdict["trial"] for verdict in verdicts if verdict["catch"] == "0")
    trials = [json.loads(line)["id"] for line in (study.parent / "T" / "trials.jsonl").read_text().splitlines()]
    number = len(trials) - 20
    assert status["coverage"] == {"all": number, "fewest": 0, "most": max(plain.values())}


def test_the_curve_counts_events(study: Path) -> None:
    """Beside the lines of the log, counted one by one."""
    status = read_status(study, material_of(study))
    events = [json.loads(line) for line in (study / "events.jsonl").read_text().splitlines()]
    drawn = status["curve"]
    assert drawn["at"] == sorted(drawn["at"])
    for at, joined, finished, out in zip(*(drawn[name] for name in ("at", "joined", "finished", "out")), strict=True):
        before = [event for event in events if event["at"] <= at]
        assert joined == sum(event["event"] == "joined" for event in before)
        done = Counter(event["judge"] for event in before if event["event"] == "step")
        assert finished == sum(number == 11 for number in done.values())  # eight trials and three pages
        assert out == sum(event.get("agree") is False for event in before)
    assert (drawn["joined"][-1], drawn["finished"][-1], drawn["out"][-1]) == (7, 5, 1)
    first = next(row for row in status["rows"] if row["stage"] == "finished")
    of_first = [event for event in events if event.get("judge") == first["judge"]]
    took = datetime.fromisoformat(of_first[-1]["at"]) - datetime.fromisoformat(of_first[0]["at"])
    assert first["minutes"] == pytest.approx(took.total_seconds() / 60, abs=0.006)


def test_a_long_curve_is_thinned_and_keeps_its_ends(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = curve(read_state(study), material_of(study))
    monkeypatch.setattr("judging.study.results.progress.MOST_POINTS", 4)
    thin = curve(read_state(study), material_of(study))
    assert len(whole["at"]) > len(thin["at"]) == 4
    points = set(zip(*whole.values(), strict=True))
    assert [point in points for point in zip(*thin.values(), strict=True)] == [True] * 4
    assert [(values[0], values[-1]) for values in thin.values()] == [(v[0], v[-1]) for v in whole.values()]


def test_quotas_of_tests_add_up_to_what_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online_studies.replies(monkeypatch)
    folder = online_studies.made(tmp_path, tests_wanted=40, exchanges=[1, 2], two_people=0.25, person_deceives=0.5)
    status = read_status(folder, material_of(folder))
    quotas = {row["name"]: (row["done"], row["wanted"]) for row in status["quotas"]}
    assert quotas == {
        "1 question": (0, 20),
        "2 questions": (0, 20),
        "person deceives": (0, 20),
        "machine deceives": (0, 20),
        "person machine": (0, 30),
        "two people": (0, 10),
    }
    assert status["server"]["agents"] == ["argues", "deceives"]
    assert status["server"]["problems"] == []
    (tmp_path / "live").mkdir()
    timed = online_studies.made(tmp_path / "live", "interrogation", tests_wanted=30, machines=["argues", "deceives"])
    status = read_status(timed, material_of(timed))
    assert [(row["name"], row["wanted"]) for row in status["quotas"]] == [
        ("argues", 15),
        ("deceives", 15),
        ("person machine", 30),
    ]


def test_text_and_rows_say_what_json_says(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["study", "status", str(study), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert main(["study", "status", str(study), "--judges"]) == 0
    text = capsys.readouterr().out
    times = status["times"]
    said = f"median time of a judge who finished: {times['minutes']:g} min; for a trial: {times['seconds']:g} s"
    assert said in text
    lines = {line.split()[1]: line for line in text.splitlines() if line[:1].isdigit()}
    assert lines.keys() == {row["judge"] for row in status["rows"]}
    assert all(f"{row['done']} of {row['of']}" in lines[row["judge"]] for row in status["rows"])
    assert main(["study", "status", str(study), "--json", "--judges"]) == 2


def test_whoever_has_begun_goes_on_when_nobody_new_may_begin(tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(20))
    folder = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "trial")
        await served.set_entry(is_open=False)
        await served.set_entry(is_open=False)
        with pytest.raises(Refused, match="no_new"):
            await served.join(None, None)
        while judge.current is not None:
            await served.answer(judge, judge.step, {"verdicts": ["human"], "rt": 1000.0})
        assert judge.ended == "finished"
        await served.set_entry(is_open=True)
        await served.join(None, None)

    run(folder, work)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    kind = EntryChanged.model_fields["event"].default
    assert [event["open"] for event in events if event["event"] == kind] == [False, True]


def test_the_lab_makes_links_exports_and_closes(server: tuple[Path, Server], tmp_path: Path) -> None:
    folder, running = server
    admin = lab(running)
    for path in ("status", "export"):
        assert Visitor(running.port).ask("GET", f"/admin/{path}")[0] == 401
    for path in ("entry", "close", "links"):
        assert Visitor(running.port, authorization="Bearer no").post(f"/admin/{path}")[0] == 401
        assert (
            Visitor(running.port, authorization=f"Bearer {KEY}", origin="http://evil").post(f"/admin/{path}")[0] == 403
        )
    for path, body in (("links", {"number": 0}), ("links", {"number": 1001}), ("links", {}), ("entry", {"open": 1})):
        assert admin.post(f"/admin/{path}", **body)[0] == 422
    status, made = admin.post("/admin/links", number=2)
    assert (status, len({*made["links"]})) == (200, 2)
    assert not any(token in (folder / "links.jsonl").read_text() for token in made["links"])
    assert admin.post("/admin/entry", open=False)[1]["entry"] == "stopped"
    assert Visitor(running.port).post("/join", link=made["links"][0])[0] == 403
    assert admin.post("/admin/entry", open=True)[1]["entry"] == "open"
    assert Visitor(running.port).post("/join", link=made["links"][0])[0] == 200
    status, data = admin.ask("GET", "/admin/export?personal=true")
    assert (status, admin.heard[-1][1]["content-type"]) == (200, "application/zip")
    assert main(["study", "export", str(folder), "-o", str(tmp_path / "out"), "--personal"]) == 0
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for name in ("verdicts.csv", "participants.csv"):
            assert packed.read(name) == (tmp_path / "out" / name).read_bytes()
    exports = [json.loads(line)["out"] for line in (folder / "exports.jsonl").read_text().splitlines()]
    assert exports == ["downloaded from /admin", str((tmp_path / "out").resolve())]
    with zipfile.ZipFile(io.BytesIO(admin.ask("GET", "/admin/export")[1])) as packed:
        assert "participants.csv" not in packed.namelist()
    assert admin.post("/admin/close")[1]["entry"] == "closed"
    assert Visitor(running.port).post("/join", link=made["links"][1])[0] == 403
    assert read_state(folder).closed is not None
    assert KEY not in running.said()


def test_the_page_is_live_and_the_key_stays_in_its_tab(
    browser: Browser, server: tuple[Path, Server], tmp_path: Path
) -> None:
    folder, running = server
    watched = WatchedPage(browser, accept_downloads=True, viewport={"width": 390, "height": 844})
    page = watched.page
    page.goto(f"{running.url}/admin")
    page.get_by_label("Secret key").fill("not-the-key")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("This is not the key.").wait_for()
    assert watched.complaints.pop().count("401")
    page.get_by_label("Secret key").fill(KEY)
    page.get_by_role("button", name="Show").click()
    page.get_by_text("5 of 50").wait_for()
    assert page.get_by_role("heading", name="Human or machine?").is_visible()
    assert not page.get_by_label("Secret key").is_visible()
    assert KEY not in page.content()
    assert page.locator("#key").input_value() == ""
    assert page.locator(".curve .series.joined").count() == 2  # the line, and what it is
    assert "joined 7" in page.locator(".keys").inner_text()
    codes = [row["judge"] for row in read_status(folder, material_of(folder))["rows"]]
    shown = page.locator("#people tbody tr")
    assert [shown.nth(at).locator("td").first.inner_text() for at in range(shown.count())] == codes[::-1]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    page.get_by_role("button", name="Make links").click()
    links = page.get_by_label("New personal links")
    links.wait_for()
    link = links.input_value().split("\n")[0]
    assert link.startswith(f"{running.url}/?link=")
    visitor = Visitor(running.port)
    seen = visitor.post("/join", link=link.partition("=")[2])[1]
    while seen["kind"] != "end":  # meanwhile the page looks by itself
        said: dict[str, Any] = {"agree": True} if seen["kind"] == "consent" else {}
        if seen["kind"] == "trial":
            said = {"verdicts": ["human"], "rt": 1500.0}
        seen = visitor.post("/answer", step=seen["step"], answer=said)[1]["next"]
    page.get_by_text("6 of 50").wait_for()
    assert links.input_value().startswith(link)  # a new look leaves alone what the lab is at
    page.get_by_role("button", name="Let nobody new begin").click()
    page.locator("#state").get_by_text("nobody new may begin").wait_for()
    page.get_by_role("button", name="Let new people begin").click()
    page.locator("#state").get_by_text("open").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as a zip file").click()
    download.value.save_as(tmp_path / "got.zip")
    with zipfile.ZipFile(tmp_path / "got.zip") as packed:
        assert "verdicts.csv" in packed.namelist()
    page.reload()  # in this tab the key is known
    page.get_by_text("6 of 50").wait_for()
    other = watched.context.new_page()
    other.goto(f"{running.url}/admin")
    other.get_by_label("Secret key").wait_for()  # in another one it is not
    page.get_by_role("button", name="Leave").click()
    page.get_by_label("Secret key").wait_for()
    assert page.locator("#people").inner_text() == ""
    assert (
        page.evaluate("[...Object.values(sessionStorage), ...Object.values(localStorage), document.cookie].join('')")
        == ""
    )
    page.reload()
    page.get_by_label("Secret key").wait_for()
    assert watched.complaints == []
    assert not any(KEY in address for address in watched.asked)
    assert all(address.startswith((running.url, "blob:")) for address in watched.asked)
    watched.context.close()
