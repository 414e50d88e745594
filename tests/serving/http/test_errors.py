"""Errors as they are documented: every status and code that the code has stands in docs/http.md, and no other."""

import ast
import re
from pathlib import Path

import pytest

from serving.http import conversations, errors
from tests.helpers.served_here import Here, here

ROOT = Path(__file__).parents[3]


def raised() -> set[tuple[int, str]]:
    """Status and code of every ``ApiError(status, "code", …)``, and of those whose code is looked up."""
    found = {(422, code) for code in errors.MENDABLE}
    found |= {(status, code) for code, status in conversations.STATUS.items()}
    found |= {(status, code) for status, (code, _) in errors.FRAMEWORK_ERRORS.items()}
    for file in (ROOT / "serving" / "http").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Name("ApiError"), args=[ast.Constant(int(status)), ast.Constant(str(code)), *_]):
                    found.add((status, code))
    return found


def documented() -> set[tuple[int, str]]:
    """Status and code of each row of the table."""
    rows = re.findall(r"^\| (\d{3}) \| ([^|]*) \|", (ROOT / "docs" / "http.md").read_text(), re.MULTILINE)
    return {(int(status), code) for status, codes in rows for code in re.findall("`([a-z_]+)`", codes)}


def test_every_error_is_documented_and_no_other() -> None:
    found = raised()
    assert len(found) > 30
    assert documented() == found


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json; charset=utf-8", None),
        ("APPLICATION/JSON", None),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
def test_no_route_takes_what_a_form_of_another_page_can_send(kind: str, status: int | None) -> None:
    async def work(found: Here) -> None:
        posts = 0
        for path, methods in (await found.client.get("/openapi.json")).json()["paths"].items():
            answer = await found.client.post(path, content=b"{}", headers={"content-type": kind})
            if "post" not in methods:
                wanted = ", ".join(sorted(method.upper() for method in methods))
                assert (answer.status_code, ", ".join(sorted(answer.headers["allow"].split(", ")))) == (405, wanted)
                continue
            posts += 1
            assert (answer.status_code == 415) == (status is not None)
        assert posts == 7

    here(work)
