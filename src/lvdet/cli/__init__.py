"""The command line: one file per verb. A verb parses, makes one library call and prints."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

from lvdet.errors import AnotherProcessError, InputError, LvdetError

#: Modules that come with an extra of lvdet, and what their packages are called.
_TRAIN = {
    "torch": "torch",
    "torchvision": "torchvision",
    "safetensors": "safetensors",
    "PIL": "Pillow",
}


def main() -> None:
    """Runs the command line; bad input is one line on stderr and exit code 2, failure 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals and names that are not UTF-8
    _end_on_sigterm()
    try:
        from lvdet.cli.app import run

        code = run(sys.argv[1:])
    except InputError as error:
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
    """SIGTERM ends the process as an error does: what is half written is removed."""
    process = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:
            sys.exit(128 + number)
        signal.signal(number, signal.SIG_DFL)  # one that was forked ends as ever
        signal.raise_signal(number)

    in_main = threading.current_thread() is threading.main_thread()  # others cannot set it
    if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def _missing(error: ImportError) -> str | None:
    """What to say where a package is not installed; None for other errors."""
    if "_native" in str(error):  # of the package lvdet, which is there
        return "lvdet's compiled core is missing: reinstall lvdet with pip"
    package = (error.name or "lvdet").partition(".")[0]
    if package == "lvdet" or not isinstance(error, ModuleNotFoundError):
        return None
    if package in _TRAIN:
        return f"{_TRAIN[package]} is not installed: pip install 'lvdet[train]'"
    return f"{package} is not installed: pip install {package}"


def _fail(text: str, code: int) -> NoReturn:
    print(f"lvdet: error: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)
