"""The script that puts published templates beside ours: what is right passes, and each kind of fault is noticed."""

import datetime
from pathlib import Path

import check_templates
import pytest
from transformers.utils import chat_template_utils

from agents.language.engines.chat_template import ChatTemplate
from tests.helpers import chat_templates as kinds

NAMES = [name for name, value in vars(kinds).items() if name.isupper() and not name.startswith("_") and value]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_right_or_refused(tmp_path: Path, name: str) -> None:
    cells = check_templates.row(check_templates.opened_case(name, getattr(kinds, name), tmp_path))
    assert {column: cell.text for column, cell in cells.items() if cell.state == "WRONG"} == {}
    assert cells["opened"].state == ("refused" if name in ("WANTS_FUNCTIONS", "WANTS_TOOLS") else "right")


def test_a_lost_system_text_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChatTemplate, "begins", "kept")
    monkeypatch.setattr(ChatTemplate, "_keeps", lambda *arguments: True)
    cells = check_templates.row(check_templates.opened_case("x", kinds.INTO_THE_LAST, tmp_path))
    assert cells["system alone"] == check_templates.Cell("WRONG", "the system text is lost")
    assert cells["later"].state == "right"


def test_todays_date_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = check_templates.opened_case("x", kinds.ASKS_FOR_THE_TIME, tmp_path)
    assert check_templates.date(case) == check_templates.Cell("right", "the time, which is fixed")

    class Clock(datetime.datetime):
        @property
        def strftime(self) -> object:  # type: ignore[override]
            return lambda form: chat_template_utils.datetime.now().strftime(form)

    fake = type("Module", (), {"datetime": Clock, "time": datetime.time, "date": datetime.date})
    monkeypatch.setattr("agents.language.engines.chat_template.datetime", fake)
    case.template.prompt.cache_clear()
    assert check_templates.date(case).state == "WRONG"


def test_another_prompt_than_the_published_one_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = check_templates.opened_case("x", kinds.PLAIN, tmp_path)
    render = ChatTemplate.render
    monkeypatch.setattr(ChatTemplate, "render", lambda *arguments, **more: render(*arguments, **more) + "!")
    assert check_templates.chat(check_templates.USER)(case).state == "WRONG"


def test_folders_of_templates_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text("{{ messages }}")
    with pytest.raises(SystemExit, match="holds no"):
        list(check_templates.templates(None, [tmp_path / "b"]))
