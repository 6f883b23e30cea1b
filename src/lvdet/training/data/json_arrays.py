"""The elements of a JSON file's arrays one by one, without holding the file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from lvdet.errors import InputError
from lvdet.files.progress import Update

#: Characters read at a time.
CHUNK = 1 << 22
#: Characters that one element may have: what goes on for longer is taken for damaged.
LONGEST = 1 << 26

_space = re.compile(r"[ \t\n\r]*").match


def read_arrays(
    path: Path, names: Collection[str], update: Update | None = None
) -> Iterator[tuple[str, Any]]:
    """Name and element, for all elements of the named arrays of the object in a JSON file.

    Other values are passed over. A named array that is not there is an InputError, at the end.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = _Text(path, file, update)
            missing = set(names)
            for name in text.members():
                if name in names:
                    missing.discard(name)
                    text.want("[", f"'{name}' as an array")
                    for element in text.elements():
                        yield name, element
                else:
                    text.skip()
            text.want("", "the end")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not JSON: not UTF-8 ({error.reason})") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    for name in names:
        if name in missing:
            raise InputError(f"{path}: '{name}' is missing, expected a file in LVIS or COCO format")


class _Text:
    """A window that moves along the text of a file."""

    def __init__(self, path: Path, file: IO[str], update: Update | None) -> None:
        self._path = path
        self._file = file
        self._progress = update
        self._decode = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._before = 0  # characters of the file before the window
        self._ended = False

    def members(self) -> Iterator[str]:
        """The names of an object; the value of each is to be read before the next is asked for."""
        self.want("{", "an object")
        self._at += 1
        if self._peek() != "}":
            while True:
                self.want('"', "a name")
                name = self._value()
                self.want(":", "':'")
                self._at += 1
                yield name
                if self._peek() != ",":
                    break
                self._at += 1
        self.want("}", "',' or '}'")
        self._at += 1

    def elements(self) -> Iterator[Any]:
        """The elements of an array."""
        self._at += 1
        if self._peek() != "]":
            while True:
                yield self._value()
                if self._peek() != ",":
                    break
                self._at += 1
        self.want("]", "',' or ']'")
        self._at += 1

    def skip(self) -> None:
        """Passes over a value, however large."""
        kind = self._peek()
        if kind == "{":
            for _ in self.members():
                self._value()
        elif kind == "[":
            for _ in self.elements():
                pass
        else:
            self._value()

    def want(self, character: str, what: str) -> None:
        """An InputError unless the next character, after white space, is this one."""
        if self._peek() != character:
            self._fail(f"expected {what}", self._at)

    def _peek(self) -> str:
        """The next character after white space, "" at the end."""
        while True:
            match = _space(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read()

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or len(self._text) - self._at > LONGEST:
                    self._fail(error.msg, error.pos)
            except RecursionError:
                self._fail("too many brackets within each other", self._at)
            else:
                if end < len(self._text) or self._ended:  # else a number could go on
                    self._at = end
                    return value
            self._read()

    def _read(self) -> None:
        """Moves the window on: what is left of it, and at least as much again."""
        left = self._text[self._at :]
        new = self._file.read(max(CHUNK, len(left)))
        self._ended = not new
        self._before += self._at
        self._text, self._at = left + new, 0
        if self._progress is not None:
            number = self._file.fileno()
            self._progress(os.lseek(number, 0, os.SEEK_CUR), os.fstat(number).st_size)

    def _fail(self, problem: str, at: int) -> NoReturn:
        place = self._before + at
        problem = problem[:1].lower() + problem[1:]
        raise InputError(f"{self._path}: not JSON: {problem} at character {place}") from None
