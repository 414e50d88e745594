"""How a command ends: its errors become sentences, and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings

from agents.errors import InputError, TuringlikeError
from serving.scheduling.guardian import OWN_ERROR
from serving.scheduling.interrupts import Interrupted

SHOWN = 50  # problems on a terminal; --json has them all


def carry_out(options: argparse.Namespace) -> int:
    """Run the command that ``options`` say; returns its exit code. Raises nothing: what fails is told on stderr."""
    # Pillow warns of odd metadata in stimuli; what matters of them becomes an error of that stimulus.
    warnings.filterwarnings("ignore", module="PIL")
    try:
        return int(options.run(options))
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:
        traceback.print_exc()
        return OWN_ERROR


def complain(error: TuringlikeError) -> None:
    """Tell an error, and the problems that it names, on stderr."""
    problems = error.problems if isinstance(error, InputError) else ()
    for problem in problems[:SHOWN]:
        print(problem, file=sys.stderr)
    if len(problems) > SHOWN:
        print(f"… and {len(problems) - SHOWN} more; `turinglike check --json` lists them all", file=sys.stderr)
    print(f"turinglike: {error}", file=sys.stderr)
