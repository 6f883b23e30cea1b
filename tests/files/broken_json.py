"""Text that is not JSON."""

from __future__ import annotations

#: Not a value in any place; `json` refuses each.
VALUES = [
    "", "tru", "True", "truer", "nul", "None", "nan", "inf", "-inf", "Nan", "infinity",
    "undefined", "+1", ".5", "-.5", "1.", "1.e5", "01", "-01", "00", "-", "--1", "1e", "1e+",
    "1e1.5", "0x10", "1_000", "1,000 000", "1 2", "'a'", '"a" "b"', r'"\x41"', r'"\u12G4"',
    r'"\u12"', r'"\ "', '"a\nb"', '"a\tb"', '"a\x00b"', '"a\x1fb"', "[1,]", "[,1]", "[1 2]",
    "[1;2]", "[", "]", "[1}", "[[]", "{", "}", "{]", '{"a": 1,}', '{,"a": 1}', '{"a" 1}', '{"a":}',
    "{a: 1}", "{1: 1}", '{"a": 1 "b": 2}', '{"a": 1; "b": 2}', "// note\n1", "/* note */ 1",
    "\x00", "\ufeff1", "(1)", "1\x0b", "-NaN", "-nan", "+Infinity", "NaN0", "Infinity1",
    "-Infinit",
]  # fmt: skip


def named(text: str) -> str:
    """The text as the name of a test."""
    return repr(text)[1:-1] or "nothing"
