"""Where a prediction keeps what is finished until all is, so that a killed one can resume.

A folder beside the outcome, OUT.work:

    settings.json        what the prediction was started with
    boxes-0.jsonl        the outcome of the first pass for each NMS threshold, or its journal
    outcome-0.json       the final files, or their journals
    outcome-0.3.json     of several processes what number 3 has of such a file, or its journal
    damaged-0.json       ids and names of images that process 0 could not read
    failed               one of several processes has failed, and the others are to end
    complete             all final files are here or in their places
    lock                 locked while a process predicts

At the end the settings are removed before what says that all is complete. So where that stands
alone, the files are in their places, and there is nothing to resume.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lvdet.errors import InputError, OutputError
from lvdet.files.locking import make_and_lock
from lvdet.files.writing import write_text
from lvdet.inference.batches import Image

_SETTINGS, _COMPLETE, _LOCK, _FAILED = "settings.json", "complete", "lock", "failed"
#: Settings that are checksums, and what differs where they do.
_CHECKSUMS = {"weights": "another checkpoint", "images": "other images"}


class OtherSettingsError(InputError):
    """The folder belongs to a prediction with other settings."""


class WorkPaths:
    """The paths of a prediction's files.

    targets: where the outcomes go
    """

    def __init__(self, out: Path, targets: Sequence[Path]) -> None:
        real = Path(os.path.realpath(out))
        self.path = real.with_name(real.name + ".work")
        self._targets = [Path(os.path.realpath(target)) for target in targets]

    def boxes(self, number: int) -> Path:
        """The results of the first pass for a threshold."""
        return self.path / f"boxes-{number}.jsonl"

    def outcome(self, number: int) -> Path:
        """The final file for a threshold, before it is moved to its target."""
        return self.path / f"outcome-{number}{self._targets[number].suffix.lower()}"

    @property
    def failed(self) -> Path:
        """Exists once one of several processes has failed."""
        return self.path / _FAILED

    def damaged(self, rank: int) -> Path:
        """The damaged images of a process."""
        return self.path / f"damaged-{rank}.json"


class WorkFolder(WorkPaths):
    """The folder of one prediction, locked while it is open.

    targets:  the final files, which appear together at the end
    settings: the values that must be the same to resume
    """

    def __init__(
        self, out: Path, targets: Sequence[Path], settings: dict[str, Any], *, overwrite: bool
    ) -> None:
        super().__init__(out, targets)
        if not self.path.exists():
            self._require_free(overwrite)
        self._lock = make_and_lock(self.path, _LOCK, "predicting")
        try:
            if not self.resumable:
                self._empty()
            if not self.complete:
                self._require_free(overwrite)
            self.failed.unlink(missing_ok=True)
            if self.resumable:
                self._require_same(settings)
            else:
                write_text(json.dumps(settings) + "\n", self.path / _SETTINGS)
        except BaseException:
            if not self.resumable:
                with suppress(OSError):
                    self._remove()
            self._lock.close()
            raise

    @property
    def resumable(self) -> bool:
        """Whether there is something to resume."""
        return (self.path / _SETTINGS).exists()

    @property
    def complete(self) -> bool:
        """Whether an earlier process has completed all results."""
        return (self.path / _COMPLETE).exists()

    def finish(self) -> None:
        """Moves the results to their targets; nothing remains of the folder."""
        try:
            (self.path / _COMPLETE).touch()
            for number, target in enumerate(self._targets):
                with suppress(FileNotFoundError):  # moved by a process that was killed then
                    os.replace(self.outcome(number), target)
            self._empty()
            self._remove()
        except OSError as error:
            raise OutputError(f"{self.path}: {error.strerror or error}") from None

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def _empty(self) -> None:
        """Removes everything except the lock; what is needed to resume goes last."""
        for pattern in ("boxes-*", "outcome-*", "damaged-*", ".lvdet-*.part"):
            for path in self.path.glob(pattern):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        for name in (_FAILED, _SETTINGS, _COMPLETE):
            (self.path / name).unlink(missing_ok=True)

    def _remove(self) -> None:
        """Removes the folder, which then contains only the lock."""
        (self.path / _LOCK).unlink()
        with suppress(OSError):  # someone else's file is there, or the next process's lock
            self.path.rmdir()

    def _require_free(self, overwrite: bool) -> None:
        for target in self._targets:
            if target.exists() and not target.is_file():
                raise InputError(f"{target}: not a regular file, cannot be replaced")
            if target.exists() and not overwrite:
                raise InputError(f"{target}: already exists; pass --overwrite to replace it")

    def _require_same(self, wanted: dict[str, Any]) -> None:
        """Raises for settings that differ from those the prediction started with."""
        found = self._content(_SETTINGS)
        if not isinstance(found, dict):
            raise InputError(f"{self.path / _SETTINGS}: damaged; remove the folder to start over")
        wanted = json.loads(json.dumps(wanted))
        for name in {**found, **wanted}:
            before, now = found.get(name), wanted.get(name)
            if before != now:
                if name == "version":
                    raise OtherSettingsError(
                        f"{self.path}: left by another version of lvdet; remove the folder to "
                        "start over"
                    )
                how = _CHECKSUMS.get(name, f"{name} {before}, now {now}")
                raise OtherSettingsError(
                    f"{self.path}: started with {how}; use the same settings to resume, or remove "
                    "the folder to start over"
                )

    def _content(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_bytes())
        except ValueError:
            return None


class DamagedImages:
    """Ids and names of images that could not be read, in a file if there are any."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names: dict[int, str] = {}
        with suppress(FileNotFoundError, ValueError):
            self.names = dict(json.loads(path.read_bytes()))

    def add(self, images: Sequence[Image]) -> None:
        """Records damaged images."""
        self.names |= {image_id: path.name for image_id, path in images}
        write_text(json.dumps([*self.names.items()]) + "\n", self._path)
