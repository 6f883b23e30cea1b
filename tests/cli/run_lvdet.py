"""The command line as a user runs it: a process of its own, or, where many are needed, a call."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

COMMAND = Path(sys.executable).with_name("lvdet")


@dataclass(frozen=True)
class Done:
    """What a finished command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- out\n{self.out}--- err\n{self.err}"

    def good(self) -> Done:
        """It succeeded, and drew nothing that only a terminal understands."""
        assert self.code == 0, self
        assert "\x1b" not in self.out + self.err, self
        assert "\r" not in self.out + self.err, self
        return self

    def refused(self, *says: str, code: int = 2) -> Done:
        """It ended with the code and one line on standard error, which holds the words."""
        assert self.code == code, self
        assert self.out == "", self
        assert self.err.startswith("lvdet: error: "), self
        assert self.err.endswith("\n"), self
        assert self.err.count("\n") == 1, self
        for words in says:
            assert words in self.err, self
        return self


def lvdet_command(
    *arguments: str | Path, input: bytes = b"", cwd: Path | None = None, **environment: str
) -> Done:
    """Runs `lvdet` with nobody looking; keywords are variables of its environment."""
    return _finished([COMMAND, *arguments], environment, input=input, cwd=cwd)


def shell_command(text: str) -> Done:
    """Runs a line of Bash."""
    return _finished(["bash", "-c", text], {})


def python_program(code: str, *arguments: str | Path, **environment: str) -> Done:
    """Runs some lines of Python in a process of their own."""
    return _finished([sys.executable, "-c", code, *arguments], environment)


def _finished(command: list[str | Path], environment: dict[str, str], **options: Any) -> Done:
    variables = {name: value for name, value in os.environ.items() if name != "LVDET_THREADS"}
    done = subprocess.run(
        command, env=variables | environment, capture_output=True, timeout=120, **options
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def lvdet_started(*arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """`lvdet` under way, its standard error at hand; at the end it is gone, whatever happened."""
    with subprocess.Popen([COMMAND, *arguments], stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def lvdet_call(*arguments: str | Path, input: bytes = b"", **environment: str) -> Done:
    """The same inside this process, some thirty times faster."""
    from lvdet.cli import main

    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    code: object = 0
    with (
        patch.object(sys, "argv", ["lvdet", *map(str, arguments)]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(input))),
        patch.dict(os.environ, environment),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        if "LVDET_THREADS" not in environment:
            os.environ.pop("LVDET_THREADS", None)
        try:
            main()
        except SystemExit as end:
            code = end.code
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    assert isinstance(code, int)
    return Done(code, *texts)
