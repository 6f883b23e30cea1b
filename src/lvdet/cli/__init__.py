"""The command line: one file per verb. A verb parses, makes one library call and prints."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

from lvdet.errors import AnotherProcessError, InputError, LvdetError, MissingPackageError


def main() -> None:
    """Runs the command line. Errors are one line on stderr; bad input exits with 2, failure with
    1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals and names that are not UTF-8
    _end_on_sigterm()
    try:
        from lvdet.cli.app import run

        code = run(sys.argv[1:])
    except (InputError, MissingPackageError) as error:
        _fail(str(error), 2)
    except AnotherProcessError:
        sys.exit(1)
    except (LvdetError, OSError) as error:
        _fail(str(error), 1)
    except MemoryError:
        _fail("not enough memory", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except ImportError as error:
        text = _missing(error)
        if text is None:
            raise
        _fail(text, 1)
    sys.exit(code)


def _end_on_sigterm() -> None:
    """Makes SIGTERM end the process like an error, so that partial files are removed."""
    process = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:
            sys.exit(128 + number)
        signal.signal(number, signal.SIG_DFL)  # a forked process ends as usual
        signal.raise_signal(number)

    in_main = threading.current_thread() is threading.main_thread()  # other threads cannot set it
    if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def _missing(error: ImportError) -> str | None:
    """The message for a package that is not installed; None for other errors."""
    if "_native" in str(error):  # lvdet itself is installed
        return "lvdet's compiled core is missing: reinstall lvdet with pip"
    package = (error.name or "lvdet").partition(".")[0]
    if package == "lvdet" or not isinstance(error, ModuleNotFoundError):
        return None
    return f"{package} is not installed: pip install {package}"


def _fail(text: str, code: int) -> NoReturn:
    print(f"lvdet: error: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)
