"""Config files: TOML with the sections and keys of `lvdet.training.configuration.config`.

    [data]
    train = "lvis_v1_train.json"
    train_images = "coco"

Only these two keys are required. An unknown key or a value of the wrong type raises.
`base = "other.toml"` starts from the values of another file, beside this one or shipped with lvdet;
the values of this file win.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from lvdet.errors import InputError
from lvdet.files.opening import read_small
from lvdet.training.configuration.config import Config
from lvdet.training.configuration.config_rules import check_rules
from lvdet.training.configuration.shipped import FOLDER, shipped_file

#: Keys that hold a path, and their values that are not paths.
PATHS: dict[str, tuple[str, ...]] = {
    "data.train": ("",),
    "data.train_images": ("",),
    "data.val": ("",),
    "data.val_images": ("",),
    "model.weights": ("imagenet", "none"),
    "retrain.checkpoint": ("",),
}
_SECTIONS = get_type_hints(Config)
_TYPES = {
    f"{section}.{key}": hint
    for section, kind in _SECTIONS.items()
    for key, hint in get_type_hints(kind).items()
}
_WORDS = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    tuple[int, ...]: "a list of integers",
}


def read_config(path: Path, changes: Sequence[str] = ()) -> Config:
    """Reads a config file, or a config that ships with lvdet by name, and applies
    "section.key=value" overrides from the command line. Paths become absolute: those in a file are
    relative to its folder, those in overrides and shipped configs to the current folder."""
    return _resolved(_chain(_located(path), ()), changes, str(path), True)


def config_name(path: Path) -> str:
    """The name of a config: its file's name without the extension, or its own name."""
    known = None if os.path.isfile(path) else shipped_file(str(path))
    return (known or path).stem


def _located(path: Path) -> Path:
    """The file itself, or the file of a shipped config."""
    known = None if os.path.isfile(path) else shipped_file(str(path))
    if known is None and not os.path.exists(path) and not path.suffix and path.name == str(path):
        raise InputError(
            f"{path}: no such file, nor a config that ships with lvdet (lvdet train --list)"
        )
    return known or path


def _chain(path: Path, after: tuple[Path, ...]) -> list[tuple[Path, dict[str, Any]]]:
    """The values of a file and of the files it is based on, the base first."""
    if path.resolve() in after:
        raise InputError(f"{after[0]}: base is circular, it leads back to {path}")
    values = _read(path)
    base = values.pop("base", None)
    if base is None:
        return [(path, values)]
    if not isinstance(base, str):
        raise InputError(f"{path}: base is {_short(base)}, expected a file or a name")
    beside = path.parent / Path(base).expanduser()
    found = beside if os.path.isfile(beside) else shipped_file(base)
    if found is None:
        raise InputError(
            f"{path}: base is {base!r}, which is neither a file beside it nor a config that ships "
            "with lvdet (lvdet train --list)"
        )
    return [*_chain(found, (*after, path.resolve())), (path, values)]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_small(path).decode())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start:,})") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None


def resolved(
    values: Mapping[str, Any], changes: Sequence[str], where: str, folder: Path | None
) -> Config:
    """The config of nested values; errors refer to it as `where`. Without a folder, paths are
    unchanged."""
    file = Path(where) if folder is None else folder / Path(where).name
    return _resolved([(file, dict(values))], changes, where, folder is not None)


def _resolved(
    files: Sequence[tuple[Path, Mapping[str, Any]]],
    changes: Sequence[str],
    where: str,
    absolute: bool,
) -> Config:
    """The config from the values of several files; later ones win."""
    flat: dict[str, Any] = {}
    for number, (file, values) in enumerate(files, start=1):
        named = where if number == len(files) else str(file)
        folder = (Path.cwd() if file.parent == FOLDER else file.parent) if absolute else None
        for section, content in values.items():
            if section not in _SECTIONS:
                raise InputError(f"{named}: unknown section or key {section}{_nearest(section)}")
            if not isinstance(content, Mapping):
                raise InputError(f"{named}: {section} is {_short(content)}, expected [{section}]")
            for key, value in content.items():
                flat[f"{section}.{key}"] = _typed(f"{section}.{key}", value, named, folder)
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise InputError(f"--set {change}: expected section.key=value (see --help)")
        key, where_now = key.strip(), f"--set {change}"
        flat[key] = _typed(
            key, _toml_value(text.strip()), where_now, Path.cwd() if absolute else None
        )
    config = Config()
    for name in _SECTIONS:
        mine = {k.partition(".")[2]: v for k, v in flat.items() if k.startswith(f"{name}.")}
        config = replace(config, **{name: replace(getattr(config, name), **mine)})
    check_rules(config, where)
    return config


def _typed(name: str, value: Any, where: str, folder: Path | None) -> Any:
    """A value converted to the type of its key; paths become absolute."""
    if name not in _TYPES:
        raise InputError(f"{where}: unknown key {name}{_nearest(name)}")
    hint = _TYPES[name]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if hint == tuple[int, ...] and isinstance(value, list | tuple):
        good = all(type(item) is int for item in value)
        value = tuple(value)
    else:
        good = type(value) is hint
    if not good:
        raise InputError(f"{where}: {name} is {_short(value)}, expected {_WORDS[hint]}")
    if folder is not None and name in PATHS and value not in PATHS[name]:
        return os.path.abspath(folder / Path(value).expanduser())
    return value


def _nearest(name: str) -> str:
    """A suggestion: the most similar key of the section, a key with that name in another section,
    or the most similar section."""
    section, _, key = name.rpartition(".")
    if section in _SECTIONS:
        known = [field.name for field in fields(_SECTIONS[section])]
        meant = [f"{section}.{near}" for near in difflib.get_close_matches(key, known, 1)]
    else:
        known = list(_SECTIONS)
        meant = [f"[{near}]" for near in difflib.get_close_matches(section or key, known, 1)]
    elsewhere = [other for other in _TYPES if other.partition(".")[2] == key]
    if elsewhere or meant:
        return f", did you mean {(elsewhere or meant)[0]}?"
    return f", expected one of {', '.join(known)}"


def _toml_value(text: str) -> Any:
    """A value as written in a file; anything that does not parse is a string."""
    try:
        return tomllib.loads(f"value = {text}\n")["value"]
    except tomllib.TOMLDecodeError:
        return text


def config_text(config: Config) -> str:
    """The config as TOML, which reads back as an equal one."""
    lines = []
    for section, values in asdict(config).items():
        lines += [f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def flat_values(config: Config) -> dict[str, Any]:
    """Values by "section.key"."""
    return {
        f"{section}.{key}": value
        for section, values in asdict(config).items()
        for key, value in values.items()
    }


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
