"""The error tree. Everything lvdet raises on purpose is a `LvdetError`.

LvdetError
├── InputError            the user's file, array or option is invalid (exit code 2)
├── MissingPackageError   a package of an extra is not installed (exit code 2)
├── OutputError           a result could not be written (exit code 1)
└── AnotherProcessError   one of several processes failed and reported it; the others end silently
"""

from __future__ import annotations


class LvdetError(Exception):
    """Base class of all errors raised by lvdet; the text is one line, fit to show to a user."""


class InputError(LvdetError):
    """Invalid input. The text says what was expected, what was found, and where."""


class MissingPackageError(LvdetError, ModuleNotFoundError):
    """A package of an extra is not installed. The text says what needs it and how to install it."""


class OutputError(LvdetError):
    """A result could not be written; the target is unchanged."""


class AnotherProcessError(LvdetError):
    """Another of the cooperating processes has reported an error; this one just ends."""
