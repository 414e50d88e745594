"""Files survive crashes, and the store counts what is on disk."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import LockedError
from serving.files.atomic_files import lock, repair_tail, replacing, write_json
from serving.files.output_paths import new_folder

LINES = [b'{"a":1}\n', b'{"text":"b\\u00e9"}\n', b"[1,2,3]\n", b'"' + b"x" * 70_000 + b'"\n']


@given(st.lists(st.sampled_from(LINES), max_size=6), st.data())
def test_a_tail_torn_anywhere_is_cut_to_whole_lines(lines: list[bytes], data: st.DataObject) -> None:
    import tempfile

    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "records.jsonl"
        path.write_bytes(whole[:cut])
        size = repair_tail(path)
        kept = path.read_bytes()
    expected = b""
    for line in lines:
        if len(expected + line) > cut:
            break
        expected += line
    assert kept == expected
    assert size == len(expected)


def test_a_last_line_that_does_not_parse_goes_too_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":\n\0\0\0\0')
    assert repair_tail(path) == len(b'{"a":1}\n')
    path.write_bytes(b"x{}\n" * 9 + b"{")
    assert repair_tail(path) == len(b"x{}\n" * 8)
    assert repair_tail(tmp_path / "missing") == 0


WRITE = """
import sys, time
from pathlib import Path
from serving.files.atomic_files import replacing
from serving.files.output_paths import new_folder

path = Path(sys.argv[1])
with replacing(path / "file") as file, new_folder(path / "folder", marker="page", force=True) as folder:
    file.write(b"half")
    (folder / "page").write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_writer_left_goes_with_the_next_and_a_live_ones_stays(tmp_path: Path) -> None:
    writers = []
    for _ in range(2):
        writers.append(
            subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        )
        assert writers[-1].stdout is not None
        assert writers[-1].stdout.readline() == "writing\n"
    writers[0].kill()
    writers[0].communicate()
    assert len(list(tmp_path.iterdir())) == 4
    with replacing(tmp_path / "file") as file, new_folder(tmp_path / "folder", marker="page", force=True) as folder:
        file.write(b"whole")
        (folder / "page").write_text("whole")
    left = {path.name.split(".")[1] for path in tmp_path.iterdir() if path.name.startswith(".")}
    assert left == {"file", "folder"}
    assert len(list(tmp_path.iterdir())) == 4  # the live writer's two beside the new ones
    writers[1].kill()
    writers[1].communicate()
    write_json(tmp_path / "file", 1)
    with new_folder(tmp_path / "folder", marker="page", force=True):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_dead_holder_leaves_no_lock(tmp_path: Path) -> None:
    code = "import sys, os, time; from pathlib import Path; from serving.files.atomic_files import lock\n"
    code += "with lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(LockedError, match=f"process {process.pid} on "), lock(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        with lock(tmp_path):
            pass
