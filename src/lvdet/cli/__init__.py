"""The command line: one file per verb. A verb parses, makes one library call and prints."""

from __future__ import annotations

import sys

try:
    import io
    import os
    import signal
    import threading

    from lvdet.errors import AnotherProcessError, InputError, LvdetError, MissingPackageError
except KeyboardInterrupt:
    sys.stderr.write("lvdet: error: interrupted\n")
    sys.exit(130)

TYPE_CHECKING = False  # of typing, which takes long to import
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def main() -> None:
    """Runs the command line. Errors are one line on stderr; bad input exits with 2, failure with
    1."""
    try:
        _open_standard_streams()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # for terminals and names that are not UTF-8
        _end_on_sigterm()
        from lvdet.cli.address_space import require_address_space

        require_address_space()
        from lvdet.cli.app import run

        code = run(sys.argv[1:])
    except (InputError, MissingPackageError) as error:
        _fail(str(error), 2)
    except AnotherProcessError:
        sys.exit(1)
    except LvdetError as error:
        _fail(str(error), 1)
    except OSError as error:
        what = error.strerror or str(error)
        _fail(what if error.filename is None else f"{os.fsdecode(error.filename)}: {what}", 1)
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


def _open_standard_streams() -> None:
    """Opens closed standard streams on the null device. Otherwise the next file that is opened
    would take their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


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
    if package == "lvdet":
        return None
    if not isinstance(error, ModuleNotFoundError):
        return f"cannot load {package}: {error}"
    return f"{package} is not installed: pip install {package}"


def _fail(text: str, code: int) -> NoReturn:
    print(f"lvdet: error: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)
