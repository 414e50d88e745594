"""People who share a browser: the address says who is there, and nobody goes on in another's list or is paid for it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.log.files import read_personal
from judging.study.log.state import Judge, read_state
from judging.study.pages.page_answers import Refused
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from serving.cli import main
from tests.helpers import study_folders, talk_studies
from tests.helpers.study_folders import Visitor, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REDIRECT = "https://panel.example/done?cc={code}&id={worker}&s={SESSION_ID}"
SAID = {"verdicts": ["human"], "rt": 900.0}


def made(folder: Path, **changes: Any) -> Path:
    """A study of a panel, of pictures: each judge has an id in the address, and is sent back with it."""
    trials = study_folders.write_trials(folder / "T", study_folders.picture_trials(folder / "T", 20))
    panel = {"worker": "PID", "parameters": ["SESSION_ID"], "redirect": REDIRECT}
    return study_folders.write_study(
        folder / "study", trials, "image_captioning", **{"number": 4, "most": 1000, "wanted": 1000, **panel, **changes}
    )


async def finish(study: ServedStudy, judge: Judge) -> None:
    while judge.current is not None:
        await study.answer(judge, judge.step, SAID if judge.current.kind == "trial" else {})


def answer(browser: Visitor, page: Any) -> Any:
    """The page after this one."""
    said = SAID if page["kind"] == "trial" else {}
    status, reply = browser.post("/answer", step=page["step"], list=page["list"], answer=said)
    assert (status, reply["new"]) == (200, True)
    return reply["next"]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("aa", "bb", False),
        ("aa", "aa", True),
        ("aa", "  aa ", True),
        ("aa", "AA", False),  # some panels' ids differ in this alone
        ("aa", None, True),  # loaded again without the id: the cookie is all that there is
        (None, "bb", False),
        (None, None, True),
        ("aa", "{{%PID%}}", False),  # somebody comes from a panel that fills nothing in
        ("aa", "", False),
        ("{{%PID%}}", "bb", False),
        ("{{%PID%}}", "{{%PID%}}", True),
        ("{{%PID%}}", None, True),
    ],
)
@pytest.mark.parametrize("has_finished", [False, True])
def test_the_id_in_the_address_says_who_is_at_a_browser(
    tmp_path: Path, first: str | None, second: str | None, is_same: bool, has_finished: bool
) -> None:
    async def work(study: ServedStudy) -> None:
        judge, token = await study.join(None, first)
        if has_finished:
            await finish(study, judge)
        assert study.find(token, None, first) is judge
        assert study.find(token, None, second) is (judge if is_same else None)
        if not is_same:
            other, its_token = await study.join(None, second)
            assert other is not judge
            assert (other.step, other.ended) == (0, None)
            assert other.end_code != judge.end_code
            assert study.find(its_token, None, second) is other
            assert study.find(its_token, None, first) is (other if first is None else None)

    study_folders.run(made(tmp_path), work)


def test_a_second_person_at_the_browser_has_their_own_list_code_and_redirect(tmp_path: Path) -> None:
    study = made(tmp_path)
    with serving(study) as server:
        browser = Visitor(server.port)
        first = browser.post("/join", worker="aa", parameters={"SESSION_ID": "s1"})[1]
        for _ in range(3):
            first = answer(browser, first)
        assert browser.post("/now", loaded=True, worker="bb")[1] == {"kind": "welcome"}
        second = browser.post("/join", worker="bb", parameters={"SESSION_ID": "s2"})[1]
        assert second["list"] != first["list"]
        assert (second["kind"], second["step"]) == ("instructions", 0)
        while second["kind"] != "end":
            second = answer(browser, second)
        again = browser.post("/now", loaded=True, worker="aa")[1]
        assert again == {"kind": "welcome"}
        first = browser.post("/join", worker="aa")[1]
        assert first["step"] == 3  # where they were
        while first["kind"] != "end":
            first = answer(browser, first)
        third = browser.post("/join", worker="cc")[1]
        assert (third["kind"], third["step"]) == ("instructions", 0)
    judges = read_state(study).judges
    paid = {read_personal(study)[code]["worker"]: judge.end_code for code, judge in judges.items()}
    assert len(set(paid.values())) == len(judges) == 3
    assert (first["code"], second["code"]) == (paid["aa"], paid["bb"])
    assert first["redirect"] == f"https://panel.example/done?cc={paid['aa']}&id=aa&s=s1"
    assert second["redirect"] == f"https://panel.example/done?cc={paid['bb']}&id=bb&s=s2"


def test_a_tab_that_was_left_open_changes_nothing_of_who_came_after(tmp_path: Path) -> None:
    """It is told so, and is shown nothing of theirs, whatever it sends; by its id it goes on."""
    study = made(tmp_path)
    with serving(study) as server:
        browser = Visitor(server.port)
        old = answer(browser, browser.post("/join", worker="aa")[1])
        new = answer(browser, browser.post("/join", worker="bb")[1])
        before = (study / "events.jsonl").read_bytes()
        for path, more in (("/answer", {"answer": SAID}), ("/leave", {}), ("/talk", {"after": -1}), ("/act", {})):
            status, reply = browser.post(path, step=old["step"], list=old["list"], **more)
            assert (status, reply["error"]["code"]) == (409, "other_judge")
        for named in ({"worker": "aa"}, {"list": old["list"]}, {"worker": "aa", "list": new["list"]}):
            assert browser.post("/now", **named)[1] == {"kind": "welcome"}
        seen = browser.ask("GET", f"/{old['image']}")[0]
        assert (study / "events.jsonl").read_bytes() == before
        assert browser.post("/now", worker="bb")[1] == browser.post("/now", list=new["list"])[1] == new
        assert browser.post("/join", worker="aa")[1] == old
        browser.post("/join", worker="bb")
        images = set()
        while new["kind"] != "end":  # every picture that the second person's own list shows
            images.add(new.get("image"))
            new = answer(browser, new)
        assert seen == (200 if old["image"] in images else 404)


def test_a_page_without_an_id_keeps_its_judge_when_somebody_with_one_has_begun(tmp_path: Path) -> None:
    """In two tabs: what the one without an id sends is nobody else's, and begins anew if it must."""
    study = made(tmp_path)
    with serving(study) as server:
        browser = Visitor(server.port)
        old = browser.post("/join", worker=None)[1]
        new = browser.post("/join", worker="bb")[1]
        assert new["list"] != old["list"]
        assert browser.post("/answer", step=0, list=old["list"], answer={})[0] == 409
        assert browser.post("/now", loaded=True, list=old["list"])[1] == {"kind": "welcome"}
        third = browser.post("/join", list=old["list"])[1]
        assert third["list"] not in (old["list"], new["list"])
    assert [judge.step for judge in read_state(study).judges.values()] == [0, 0, 0]


def test_nobodys_message_is_said_by_another(tmp_path: Path) -> None:
    """Two people converse; at the browser of the first a third begins, and the first's tab is open still."""
    study = talk_studies.made(tmp_path, worker="PID")
    with serving(study) as server:
        browser = Visitor(server.port)
        other = Visitor(server.port)
        pages = []
        for where, name in ((browser, "aa"), (other, "bb")):
            page = where.post("/join", worker=name)[1]
            for said in ({"agree": True}, {}):
                page = where.post("/answer", step=page["step"], list=page["list"], answer=said)[1]["next"]
            pages.append(page)
        assert browser.post("/say", list=pages[0]["list"], turn=0, text="early")[1] == {"why": "partner_left"}

        with ThreadPoolExecutor(2) as pool:
            calls = [(browser, pages[0]), (other, pages[1])]
            asked = [pool.submit(where.post, "/talk", list=page["list"], after=-1) for where, page in calls]
            seen = [call.result()[1] for call in asked]
        assert [one["state"] for one in seen] == ["open", "open"]
        turn = 0
        if seen[1]["my_turn"]:
            assert other.post("/say", list=pages[1]["list"], turn=0, text="hello")[1] == {"why": None}
            turn = 1
        browser.post("/join", worker="cc")
        status, reply = browser.post("/say", list=pages[0]["list"], turn=turn, text="who am I?")
        assert (status, reply["error"]["code"]) == (409, "other_judge")
        browser.post("/join", worker="aa")
        assert browser.post("/say", list=pages[0]["list"], turn=turn, text="it is me")[1] == {"why": None}
    assert "who am I?" not in (study / "events.jsonl").read_text()
    [talk] = read_state(study).meetings.values()
    assert talk.messages[-1].text == "it is me"


@pytest.mark.parametrize("id_", ["x" * 201, "a\u200bb", "a\nb", "\u202eaa"])
def test_what_no_id_can_be_is_refused_and_not_cut(tmp_path: Path, id_: str) -> None:
    async def work(study: ServedStudy) -> None:
        _, token = await study.join(None, "aa")
        with pytest.raises(Refused, match="bad_address"):
            study.find(token, None, id_)
        with pytest.raises(Refused, match="bad_address"):
            await study.join(None, id_)
        with pytest.raises(Refused, match="bad_address"):
            await study.join(None, "bb", {"SESSION_ID": id_})
        assert len(study.state.judges) == 1
        await study.join(None, f" {'x' * 200}\n")

    study_folders.run(folder := made(tmp_path), work)
    assert [said["worker"] for said in read_personal(folder).values()] == ["aa", "x" * 200]
    with serving(folder) as server:
        browser = Visitor(server.port)
        status, reply = browser.post("/join", worker=id_)
        assert (status, reply["error"]["code"]) == (422, "bad_address")


def test_links_and_ids_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link is one judge's: whoever has another id is refused, who comes with their id for the first time is kept."""
    folder = made(tmp_path, entry="links")
    assert main(["study", "links", str(folder), "3"]) == 0
    one, two, three = [line.partition("?link=")[2] for line in capsys.readouterr().out.splitlines()]

    async def work(study: ServedStudy) -> None:
        judge, token = await study.join(one, "aa")
        assert study.find(token, one, "aa") is study.find(token, None, None) is judge
        for link, name in ((two, None), (one, "bb"), ("guess", None)):
            assert study.find(token, link, name) is None
        with pytest.raises(Refused, match="no_link"):
            await study.join(one, "bb")
        assert (await study.join(two, "aa"))[0] is judge  # the same id is the same judge
        other, its_token = await study.join(two, None)
        assert other is not judge
        assert study.find(its_token, two, "cc") is None
        assert (await study.join(two, "cc"))[0] is other
        assert study.find(its_token, two, "cc") is other
        with pytest.raises(Refused, match="no_link"):
            await study.join(two, "dd")
        kept.update(study.log.personal)

    kept: dict[str, Any] = {}
    study_folders.run(folder, work)
    assert [said["worker"] for said in kept.values()] == ["aa", "cc"]
    assert read_personal(folder) == kept

    tokens: list[tuple[Judge, str]] = []

    async def opened(study: ServedStudy) -> None:
        """The study is open from now on; a link that was made names somebody all the same."""
        judge, token = await study.join(None, None)
        assert study.find(token, "no link at all") is judge
        assert study.find(token, three) is None
        other, _ = await study.join(three, None)
        assert other is not judge
        assert (await study.join(three, None))[0] is other
        tokens.append((judge, token))

    async def closed(study: ServedStudy) -> None:
        """Who began without a link is not whom a link is for."""
        judge, token = tokens[0]
        found = study.find(token)
        assert found is not None
        assert found.code == judge.code
        for link in (one, three, "guess"):
            assert study.find(token, link) is None

    study_folders.run(study_folders.changed(folder, entry="open"), opened)
    study_folders.run(study_folders.changed(folder, entry="links"), closed)


def test_a_new_assignment_is_kept_until_the_end(tmp_path: Path) -> None:
    """The last one before the end is paid; who comes again after it has the address of then."""

    async def work(study: ServedStudy) -> None:
        judge, _ = await study.join(None, "aa", {"SESSION_ID": "s1", "other": "x"})
        assert (await study.join(None, "aa", {"SESSION_ID": "s2"}))[0] is judge
        await study.entered(judge, {"SESSION_ID": None})
        assert study.log.personal[judge.code] == {"worker": "aa", "SESSION_ID": "s2"}
        await study.entered(judge, {"SESSION_ID": "s3"})
        await finish(study, judge)
        await study.entered(judge, {"SESSION_ID": "s4"})
        assert view(study, judge)["redirect"].endswith("&id=aa&s=s3")

    study_folders.run(made(tmp_path), work)
    assert [said["SESSION_ID"] for said in read_personal(tmp_path / "study").values()] == ["s3"]


def test_who_left_is_told_so_and_is_nobody_else(tmp_path: Path) -> None:
    """Until the server ends, and the files are without them."""

    async def work(study: ServedStudy) -> None:
        judge, token = await study.join(None, "aa")
        await study.leave(judge)
        assert study.find(token, None, "aa") is judge
        assert (await study.join(None, "aa"))[0] is judge
        assert view(study, judge)["kind"] == "left"
        assert study.find(token, None, "bb") is None
        assert (await study.join(None, "bb"))[0] is not judge

    study_folders.run(folder := made(tmp_path), work)
    assert [said["worker"] for said in read_personal(folder).values()] == ["bb"]
    assert '"aa"' not in (folder / "personal.jsonl").read_text()


def test_two_ids_in_two_tabs_of_a_browser(browser: Browser, tmp_path: Path) -> None:
    """As at a laboratory's machine; each tab goes on as itself, and what one has sent is never the other's."""
    study = made(tmp_path, number=2)
    with serving(study) as server:
        context = browser.new_context()
        faults = list[str]()

        def opened(query: str) -> Page:
            page = context.new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(f"{server.url}/{query}")
            return page

        def begin(page: Page) -> None:
            page.get_by_role("button", name="Begin").click()

        def trial(page: Page, number: int) -> None:
            page.get_by_role("heading", name=f"Trial {number} of 2").wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            page.keyboard.press("f")
            page.keyboard.press("Enter")

        first = opened("?PID=aa&SESSION_ID=s1")
        begin(first)
        first.get_by_role("heading", name="What to do").wait_for()
        first.get_by_role("button", name="Continue").click()
        trial(first, 1)
        first.get_by_role("heading", name="Trial 2 of 2").wait_for()
        second = opened("?PID=bb&SESSION_ID=s2")
        begin(second)
        second.get_by_role("heading", name="What to do").wait_for()
        trial(first, 2)  # which is not taken: this browser is the second's now
        first.get_by_text("This browser does not know you any more").wait_for()
        assert [judge.step for judge in read_state(study).judges.values()] == [2, 0]
        first.reload()
        begin(first)
        trial(first, 2)
        first.locator(".code").wait_for()
        second.get_by_role("button", name="Continue").click()
        second.get_by_text("This browser does not know you any more").wait_for()
        begin(second)
        second.get_by_role("button", name="Continue").click()
        for number in (1, 2):
            trial(second, number)
        second.locator(".code").wait_for()
        links = [page.get_by_role("link", name="Go on to finish").get_attribute("href") for page in (first, second)]
        codes = [page.inner_text(".code") for page in (first, second)]
        bare = opened("")  # loaded again without an id
        bare.locator(".code").wait_for()
        assert bare.inner_text(".code") == codes[1]
        third = opened("?PID=cc")
        begin(third)
        third.get_by_role("heading", name="What to do").wait_for()
        bare.reload()  # it keeps whose page it was
        bare.get_by_text("This browser does not know you any more").wait_for()
        context.close()
    assert faults == []
    state = read_state(study)
    assert [judge.end_code for judge in state.judges.values()][:2] == codes
    assert [link and link.partition("&id=")[2] for link in links] == ["aa&s=s1", "bb&s=s2"]
    steps = [json.loads(line) for line in (study / "events.jsonl").read_text().splitlines()]
    given = [(event["judge"], event["step"]) for event in steps if event["event"] == "step"]
    first_code, second_code, _ = state.judges
    assert sorted(given) == sorted((code, step) for code in (first_code, second_code) for step in range(3))
