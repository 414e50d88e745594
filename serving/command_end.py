"""How a command ends: its errors become sentences, and an exit code."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
import warnings

from agents.errors import InputError, StorageError, TuringlikeError
from serving.scheduling.guardian import OWN_ERROR
from serving.scheduling.interrupts import Interrupted

SHOWN = 50  # problems on a terminal; --json has them all


def carry_out(options: argparse.Namespace) -> int:
    """Run the command that ``options`` say; returns its exit code. Raises nothing: what fails is told on stderr."""
    # Pillow warns of odd metadata in stimuli; what matters of them becomes an error of that stimulus.
    warnings.filterwarnings("ignore", module="PIL")
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except TuringlikeError as error:
        complain(error)
        return error.exit_code
    except Interrupted as interrupted:
        more = "" if options.command == "serve" else "; what was written stays: run the same command again to resume"
        print(f"ended{more}", file=sys.stderr)
        return 128 + interrupted.number
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except MemoryError:
        print("turinglike: this process has no memory left", file=sys.stderr)
        return OWN_ERROR
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; what it did not read is no error.
        _drop_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _drop_output()
            print(f"turinglike: nothing more can be written: {error}", file=sys.stderr)
            return StorageError.exit_code
        traceback.print_exc()
        return OWN_ERROR


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_standard_streams() -> None:
    """Open what the starter closed (``>&-``) to nowhere: otherwise the next file that is opened takes its number, and
    what a library prints goes into it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode))


def complain(error: TuringlikeError) -> None:
    """Tell an error, and the problems that it names, on stderr."""
    problems = error.problems if isinstance(error, InputError) else ()
    for problem in problems[:SHOWN]:
        print(problem, file=sys.stderr)
    if len(problems) > SHOWN:
        print(f"… and {len(problems) - SHOWN} more; `turinglike check --json` lists them all", file=sys.stderr)
    print(f"turinglike: {error}", file=sys.stderr)
