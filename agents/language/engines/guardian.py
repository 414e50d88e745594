"""Runs a server, and ends all of its processes when it ends or this program's standard input does (Linux).

Arguments: a folder for its log, removed at the end, and the command. Who starts this holds the other end of standard
input, so that the server ends with him, however he ends. Standard output is closed once no process is left.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h: orphans below become this process's children


def main(folder: str, *command: str) -> None:
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
