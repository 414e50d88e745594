"""Runs a server, and ends all of its processes when the server ends or this program's standard input does (Linux).

Its arguments are a folder for the server's log, which is removed at the end, and the command. Whoever starts this
program holds the other end of its standard input, so that the server ends with him, however he ends. Standard output is
closed once no process is left.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h: orphans below this process become its children."""


def main(folder: str, *command: str) -> None:
    """Start ``command`` with its log in ``folder``, wait, and end whatever is left of it.

    Why so: a killed worker can end nobody. The fork takes this program out of Ray's sight, which kills a worker's
    children but not their children. As a subreaper it inherits orphans of the server, so that it can wait for the last
    of them. Without either, a GPU's memory would stay taken after a worker was killed.
    """
    if os.fork():  # Ray kills a worker's children, and no grandchildren
        os._exit(0)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with open(f"{folder}/log", "wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0)
    select.select([sys.stdin, os.pidfd_open(server.pid)], [], [])
    os.killpg(server.pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # nobody is left
        while True:
            os.wait()
    os.close(sys.stdout.fileno())
    os.read(sys.stdin.fileno(), 1)
    shutil.rmtree(folder, ignore_errors=True)  # who started this may be removing all of his


if __name__ == "__main__":
    main(*sys.argv[1:])
