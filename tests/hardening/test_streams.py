"""Standard streams that are closed, pipes, signals, and folders that may not be read."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import COMMAND, python_program, shell_command
from cli.small_set import FOUND, pair
from lvdet.errors import InputError, LvdetError, OutputError
from lvdet.files.opening import expand
from lvdet.writers.top_k_writer import TopKWriter

#: Root, too, is refused what a mode forbids.
BOUND = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
needs_setpriv = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may read everything"
)


@pytest.mark.parametrize("closed", [">&-", "2>&- <&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    out = tmp_path / "scores.json"
    done = shell_command(f'"{COMMAND}" evaluate "{gt}" "{dt}" -o "{out}" {closed}')
    assert done.code == 0, done
    assert done.err == ""
    assert json.loads(out.read_text())["protocols"]


def test_input_that_is_closed(tmp_path: Path) -> None:
    gt, _ = pair(tmp_path)
    shell_command(f'"{COMMAND}" evaluate "{gt}" - <&-').refused("the file is empty")


#: Interrupts the first import of a module, as Ctrl-C at that moment would.
INTERRUPTED = """
import sys
module = sys.argv[1]
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            raise KeyboardInterrupt
        return None
sys.modules.pop(module, None)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["lvdet", "evaluate", *sys.argv[2:]]
from lvdet.cli import main
main()
"""


@pytest.mark.parametrize(
    "module",
    ["signal", "lvdet.errors", "typer", "lvdet._native"],
)
def test_interrupted_imports(module: str, tmp_path: Path) -> None:
    done = python_program(INTERRUPTED, module, *pair(tmp_path))
    assert done.err == "lvdet: error: interrupted\n"
    assert done.code == 130


@pytest.mark.parametrize(
    ("stream", "redirected"), [("/dev/stdout", "| cat"), ("/dev/fd/1", "> OUT")]
)
def test_output_to_standard_output(stream: str, redirected: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    to = redirected.replace("OUT", f'"{tmp_path}/out.txt"')
    for command in (f'convert "{dt}"', f'evaluate "{gt}" "{dt}"'):
        done = shell_command(f'set -o pipefail; "{COMMAND}" {command} -o {stream} {to}')
        assert done.code == 0, done
        text = (tmp_path / "out.txt").read_text() if ">" in redirected else done.out
        content = json.loads(text)  # and nothing else
        if command.startswith("convert"):
            assert content == FOUND
            assert done.err == f"wrote {stream}: 2 of 2 detections\n"


def test_output_to_a_pipe_without_an_ending(tmp_path: Path) -> None:
    _, dt = pair(tmp_path)
    done = shell_command(f'"{COMMAND}" convert "{dt}" -o >(cat >&2) && sleep 0.2')
    assert json.loads(done.err.splitlines()[-1]) == FOUND, done


#: Calls each verb, and says how it ended.
CALLED = """
import sys
from lvdet.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["lvdet", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(end.code, file=sys.stderr)
"""


@needs_setpriv
def test_what_may_not_be_read_or_written(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    secret = tmp_path / "secret"
    secret.mkdir()
    pair(secret)
    secret.chmod(0)
    try:
        prefix = BOUND if os.geteuid() == 0 else []
        lines = {
            f"evaluate {gt} {secret}/dt.json": 2,
            f"evaluate {secret}/gt.json {dt}": 2,
            f"evaluate {gt} {secret}/*.json": 2,
            f"evaluate {gt} {secret}": 2,
            f"evaluate {gt} {dt} -o {secret}/a/b.json": 1,
        }
        done = subprocess.run(
            [*prefix, sys.executable, "-c", CALLED],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=60,
        )
        said = done.stderr.splitlines()
        assert [int(code) for code in said[1::2]] == [*lines.values()], done
        for line in said[::2]:
            assert str(secret) in line, done
            assert "ermission" in line, done
            assert "Errno" not in line, done
    finally:
        secret.chmod(0o700)


def test_names_that_no_file_can_have() -> None:
    with pytest.raises(InputError, match="File name too long"):
        expand("a" * 300)


@pytest.mark.parametrize("name", ["stat", "mkdir"])
def test_a_writer_that_may_not_write(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, name, denied)
    with pytest.raises(OutputError, match="cannot write: Permission denied"):
        TopKWriter(tmp_path / "out.json", dets_per_class=3)


def test_a_full_temporary_folder_is_not_the_input_s_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.RawIOBase):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    path = tmp_path / "r.json.gz"
    path.write_bytes(gzip.compress(json.dumps(FOUND).encode()))
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(
        LvdetError, match=r"cannot write a temporary file: No space.*TMPDIR"
    ) as found:
        lvdet.read_detections(path)
    assert not isinstance(found.value, InputError)
    assert str(path) not in str(found.value)


#: Ends each verb by SIGTERM while it writes; says what is left.
ENDED = """
import os, signal, sys
from lvdet.cli import main
def end(_):
    assert [name for name in os.listdir() if name.endswith(".part")]
    signal.raise_signal(signal.SIGTERM)
os.fsync = end
for line in sys.stdin.read().splitlines():
    sys.argv = ["lvdet", *line.split()]
    try:
        main()
    except SystemExit as end_of_verb:
        print(end_of_verb.code, *sorted(os.listdir()))
"""


def test_sigterm_leaves_no_parts(tmp_path: Path) -> None:
    pair(tmp_path)
    lines = [
        "convert dt.json -o out.json",
        "evaluate gt.json dt.json -o out.json",
        "rerank gt.json dt.json -o out.json",
        "compare gt.json dt.json dt.json -o out.json --resamples 100",
        "report gt.json dt.json -o out.html",
        "calibrate thresholds gt.json dt.json -o out.json",
    ]
    done = subprocess.run(
        [sys.executable, "-c", ENDED],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    ends = [line for line in done.stdout.splitlines() if line.startswith("143 ")]
    assert ends == ["143 dt.json gt.json"] * len(lines), done


def test_a_small_address_space_is_refused(tmp_path: Path) -> None:
    """Below it, OpenBLAS waits for memory without end."""
    gt, dt = pair(tmp_path)
    done = shell_command(f'ulimit -v 400000; "{COMMAND}" report "{gt}" "{dt}" -o r.html')
    done.refused("limited to 390 MiB (ulimit -v), but lvdet needs 512 MiB", code=1)


def test_libraries_that_cannot_be_loaded(tmp_path: Path) -> None:
    code = "import sys\n" + INTERRUPTED.replace(
        "raise KeyboardInterrupt",
        "raise ImportError('libx.so: failed to map segment', name=name)",
    )
    python_program(code, "typer", *pair(tmp_path)).refused("cannot load typer: libx.so", code=1)
