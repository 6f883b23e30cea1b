"""The error tree. Everything lvdet raises on purpose is a `LvdetError`.

LvdetError
├── InputError           the user's file, array or option is not what is needed (exit code 2)
├── OutputError          a result could not be written (exit code 1)
└── AnotherProcessError  one of several processes failed and says why, the others end silently
"""

from __future__ import annotations


class LvdetError(Exception):
    """Base of all errors raised by lvdet; its text is one line, fit to show to a user."""


class InputError(LvdetError):
    """Input that cannot be used. The text says what was expected, what came, and where."""


class OutputError(LvdetError):
    """A result could not be written; the target is left as it was."""


class AnotherProcessError(LvdetError):
    """One of the processes that work together has said what went wrong; this one just ends."""
