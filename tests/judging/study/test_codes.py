"""Codes stay what they are in a spreadsheet, which reads numbers, dates and truths for itself."""

import io
import random
import re
from pathlib import Path

import pandas
import pytest
from dateutil import parser

from judging.study.kit import write_kit
from judging.study.log.codes import LENGTH, LETTERS, draw_code
from judging.study.log.state import read_state
from judging.study.serving_study import ServedStudy
from tests.helpers import study_folders

CODE = "[bcdfghjkmnpqrstvwxz]{10}"
PREFIXES = ("", "talk-", "kit-")  # of the codes that stand in files


def test_no_letter_can_make_a_number_a_date_or_a_word() -> None:
    """The closed argument: numbers and dates need a digit, and words need a vowel or y."""
    assert LETTERS.isascii()
    assert LETTERS.isalpha()
    assert LETTERS.lower() == LETTERS
    assert not set(LETTERS) & set("aeiouy" + "l")
    assert len(set(LETTERS)) == len(LETTERS)
    assert len(LETTERS) ** LENGTH > 2**40  # as many as the codes that were hexadecimal


@pytest.mark.parametrize("prefix", PREFIXES)
def test_pandas_and_python_leave_every_code_as_text(prefix: str) -> None:
    chance = random.Random(1)
    codes = [prefix + draw_code(chance) for _ in range(20_000)]
    assert len(set(codes)) == len(codes)
    table = pandas.DataFrame({"small": codes, "large": [code.upper() for code in codes]})
    read = pandas.read_csv(io.StringIO(table.to_csv(index=False)))
    for name in ("small", "large"):
        assert list(read[name]) == list(table[name])
        for code in table[name]:  # one by one, for a column of text says nothing of a single cell
            with pytest.raises(ValueError, match="could not convert"):
                float(code)
            assert code[0] not in "=+-@\t\r"
    for code in codes[:2000]:
        with pytest.raises(parser.ParserError):
            parser.parse(code)
    alone = [pandas.read_csv(io.StringIO(f"code\n{code}\n"))["code"][0] for code in codes[:500]]
    assert alone == codes[:500]


def test_each_judge_has_a_code_and_a_completion_code_of_letters(tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(30))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=4, most=100, wanted=100)

    async def work(served: ServedStudy) -> None:
        for _ in range(30):
            await served.join(None, None)
        await write_kit(served, {}, 10, tmp_path / "kit.html")

    study_folders.run(study, work)
    judges = read_state(study).judges.values()
    assert len({judge.code for judge in judges}) == len({judge.end_code for judge in judges}) == 40
    for judge in judges:
        assert re.fullmatch(CODE, judge.code)
        assert re.fullmatch(CODE.upper(), judge.end_code)
        assert judge.kit is None or re.fullmatch(f"kit-{CODE}", judge.kit)


def test_a_code_that_is_there_is_not_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes another's place, however the codes are drawn."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(30))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=4)
    codes = iter(["first", "END1", "first", "first", "second", "END2"])
    monkeypatch.setattr("judging.study.serving_study.draw_code", lambda: next(codes))

    async def work(served: ServedStudy) -> None:
        for _ in range(2):
            await served.join(None, None)

    study_folders.run(study, work)
    assert list(read_state(study).judges) == ["first", "second"]
