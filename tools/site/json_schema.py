"""JSON Schema for what lvdet writes: from examples, and a check of a value against one.

Of the standard it has what these files need: type, properties, required, patternProperties,
additionalProperties and items.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

Schema = dict[str, Any]
#: An object with more keys than this, all of one type, is a mapping from names to values.
_MOST_KEYS = 40


def schema_of(values: Sequence[Any], mappings: Collection[str] = ()) -> Schema:
    """The schema that all values match.

    mappings: keys of objects that may have any keys
    """
    kinds = {_kind(value) for value in values}
    if {"integer", "number"} <= kinds:
        kinds.discard("integer")
    schema: Schema = {"type": sorted(kinds) if len(kinds) != 1 else kinds.pop()}
    objects = [value for value in values if isinstance(value, dict)]
    arrays = [value for value in values if isinstance(value, list)]
    if objects:
        schema |= _of_objects(objects, mappings)
    items = [item for array in arrays for item in array]
    if items:
        schema["items"] = schema_of(items, mappings)
    return schema


def _of_objects(objects: Sequence[Mapping[str, Any]], mappings: Collection[str]) -> Schema:
    keys = list(dict.fromkeys(key for one in objects for key in one))
    if len(keys) > _MOST_KEYS or (keys and all(key.isdigit() for key in keys)):
        return _mapping(objects, mappings)
    return {
        "properties": {
            key: {"type": "object"}
            | _mapping([one[key] for one in objects if key in one], mappings)
            if key in mappings
            else schema_of([one[key] for one in objects if key in one], mappings)
            for key in keys
        },
        "required": [key for key in keys if all(key in one for one in objects)],
    }


def _mapping(objects: Sequence[Mapping[str, Any]], mappings: Collection[str]) -> Schema:
    values = [value for one in objects for value in one.values()]
    return {"additionalProperties": schema_of(values, mappings)}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "object"


def violations(value: Any, schema: Schema, place: str = "$") -> Iterator[str]:
    """Where a value does not match; keys that the schema does not have are violations too."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = _kind(value)
    if kind not in kinds and not (kind == "integer" and "number" in kinds):
        yield f"{place} is {kind}, expected {' or '.join(kinds)}"
        return
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                yield f"{place}.{key} is missing"
        for key, inner in value.items():
            known = properties.get(key) or _by_pattern(key, schema)
            if known is None:
                yield f"{place}.{key} is not in the schema"
            else:
                yield from violations(inner, known, f"{place}.{key}")
    if isinstance(value, list) and "items" in schema:
        for number, inner in enumerate(value):
            yield from violations(inner, schema["items"], f"{place}[{number}]")


def _by_pattern(key: str, schema: Schema) -> Schema | None:
    for pattern, inner in schema.get("patternProperties", {}).items():
        if re.search(pattern, key):
            return dict(inner)
    return schema.get("additionalProperties")


def with_patterns(schema: Schema, patterns: Mapping[str, str]) -> Schema:
    """The schema with keys of the examples, such as names of groups, replaced by patterns."""
    made = dict(schema)
    properties = {
        key: with_patterns(inner, patterns) for key, inner in schema.get("properties", {}).items()
    }
    named = {patterns[key]: inner for key, inner in properties.items() if key in patterns}
    if named:
        made["patternProperties"] = named
        made["required"] = [key for key in schema["required"] if key not in patterns]
    if "properties" in schema:
        made["properties"] = {k: inner for k, inner in properties.items() if k not in patterns}
    for key in ("items", "additionalProperties"):
        if key in schema:
            made[key] = with_patterns(schema[key], patterns)
    return made


def with_types(schema: Schema, also: Mapping[str, str]) -> Schema:
    """The schema with one more type for some keys, wherever they occur."""
    made = dict(schema)
    for group in ("properties", "patternProperties"):
        if group in schema:
            made[group] = {
                key: _widened(with_types(inner, also), also.get(key))
                for key, inner in schema[group].items()
            }
    for key in ("items", "additionalProperties"):
        if key in schema:
            made[key] = with_types(schema[key], also)
    return made


def _widened(schema: Schema, kind: str | None) -> Schema:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema if kind is None else schema | {"type": sorted({*kinds, kind})}
