"""Pools: what their manifests must say, and which of their files must be there."""

import hashlib
from pathlib import Path

import pytest

from agents.errors import InputError
from agents.stimuli import TASKS
from judging.cards import pool as pools
from judging.cards.pool import MANIFEST, chosen, find_pool, names_in_box

ROOT = Path(__file__).resolve().parents[3]
PLAIN = """\
schema = "turinglike.pool/1"
name = "mine"
version = "1"
source = "Our laboratory"
licence = "CC0"
collected = "on paper"

[[answers]]
task = "word"
file = "words.csv"
"""


def manifest(folder: Path, text: str = PLAIN) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_text(text)
    return folder


@pytest.mark.parametrize("name", names_in_box())
def test_each_pool_in_the_box_can_be_read(name: str) -> None:
    pool = find_pool(name)
    assert pool.manifest.name == name
    for answers in pool.manifest.answers:
        assert (pool.folder / answers.file).is_file() != bool(answers.page)  # it is here, or a page has it


def test_the_words_in_the_box_are_those_of_the_examples() -> None:
    pool = find_pool("words-1910")
    [answers] = pool.manifest.answers
    content = (pool.folder / answers.file).read_bytes()
    assert content == (ROOT / "examples" / "people_words.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == answers.sha256
    assert chosen([pool], TASKS) == {"word_association": (pool, answers)}


def test_all_that_is_wrong_with_a_manifest_is_told_at_once(tmp_path: Path) -> None:
    text = PLAIN.replace('licence = "CC0"\n', "").replace('name = "mine"', 'name = "My words"')
    text += 'sha = "1"\nimport = { sheets = {} }\n[[answers]]\ntask = "words"\nfile = ""\n'
    with pytest.raises(InputError, match="is no manifest of a pool") as raised:
        find_pool(str(manifest(tmp_path, text)))
    told = "\n".join(map(str, raised.value.problems))
    for part in ("licence: is missing", "name: ", "answers.0.sha: ", "sheets", "answers.1.task: ", "answers.1.file: "):
        assert part in told, part
    twice = PLAIN + PLAIN[PLAIN.index("[[answers]]") :]
    with pytest.raises(InputError) as raised:
        find_pool(str(manifest(tmp_path, twice)))
    assert "word_association has several files" in str(raised.value.problems[0])


def test_wrong_options_of_import_are_told(tmp_path: Path) -> None:
    """Before they were checked, a frame of one number was an error of the program, and "sec" meant milliseconds."""
    for options, wanted in (
        ('rt = "sec", frame = "1024"', ("rt: ", "frame: must be a width and a height")),
        ('rows = ["phase"], unnamed = 1', ("rows.0: ", "unnamed: must be true or false")),
        ('columns = { subject = ["a", "b"] }', ("columns.subject: must be one name",)),
    ):
        with pytest.raises(InputError) as raised:
            find_pool(str(manifest(tmp_path, f"{PLAIN}import = {{ {options} }}\n")))
        told = str(raised.value.problems[0])
        for part in wanted:
            assert part in told, part


def test_what_is_no_pool_is_a_sentence(tmp_path: Path) -> None:
    for text, message in (
        ("word-1910", r"is no pool in the box \(coco-captions, .*\), and no folder"),
        (str(tmp_path), "has no pool.toml"),
        ("turingtest=absent", "there is no folder 'absent'"),
    ):
        with pytest.raises(InputError, match=message):
            find_pool(text)
    (tmp_path / MANIFEST).write_text("schema = ")
    with pytest.raises(InputError, match="cannot be read"):
        find_pool(str(tmp_path))


def test_files_that_lack_or_are_others_are_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        chosen([find_pool("turingtest")], ["word_association", "color_estimation"])
    told = "\n".join(map(str, raised.value.problems))
    assert "color.json is not passed on with Turinglike; get it at https://github.com/" in told
    assert "--people turingtest=FOLDER" in told
    assert len(raised.value.problems) == 2
    (tmp_path / "word.json").write_text("{}")
    (tmp_path / "color.json").write_text("{}")
    there = find_pool(f"turingtest={tmp_path}")
    assert [*chosen([there], ["word_association"])] == ["word_association"]
    with pytest.raises(InputError) as raised:
        chosen([there], ["color_estimation"])
    assert "it is made by: turinglike set color.json" in str(raised.value.problems[0])
    other = manifest(tmp_path / "other", PLAIN + f'sha256 = "{"0" * 64}"\n')
    (other / "words.csv").write_text("cue,response,subject\n")
    with pytest.raises(InputError) as raised:
        chosen([find_pool(str(other))], TASKS)
    assert "is another file than pool mine/1 names" in str(raised.value.problems[0])
    assert pools.checksum(other / "words.csv") in str(raised.value.problems[0])
    with pytest.raises(InputError) as raised:
        chosen([find_pool("words-1910"), find_pool(str(manifest(tmp_path / "mine")))], TASKS)
    assert "words-1910/1 and mine/1 both have answers; leave one out" in str(raised.value.problems[0])
