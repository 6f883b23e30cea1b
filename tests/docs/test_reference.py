"""Every public name, command and flag is in the reference, and outputs match their schemas."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lvdet
from docs.blocks import ROOT
from lvdet.cli.app import VERBS

sys.path.insert(0, str(ROOT / "tools" / "site"))

import cli_reference
import json_schema
import output_examples
import output_reference
import python_reference
import site_pages


@pytest.fixture(scope="module")
def command_page() -> str:
    return cli_reference.page()


@pytest.fixture(scope="module")
def python_page() -> str:
    return python_reference.page()


@pytest.mark.parametrize("name", lvdet.__all__)
def test_a_public_name_is_described(name: str, python_page: str) -> None:
    assert f"lvdet.{name}".replace("_", "") in python_page.replace("\\", "").replace("_", "")
    heading = "\\_\\_version\\_\\_" if name == "__version__" else name
    assert re.search(rf"^##+ lvdet\.{re.escape(heading)}$", python_page, re.MULTILINE)


def test_the_links_of_the_python_page_resolve(python_page: str) -> None:
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower())
        for heading in re.findall(r"^##+ (.+)$", python_page, re.MULTILINE)
    }
    assert set(re.findall(r"\(#([^)]+)\)", python_page)) <= headings


def help_flags(arguments: list[str]) -> set[str]:
    """The long flags that `--help` prints, from the program itself."""
    done = subprocess.run(
        [sys.executable, "-m", "lvdet", *arguments, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    before_examples = done.stdout.partition("Examples:")[0]
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", before_examples, re.MULTILINE))


def section(page: str, command: str) -> str:
    """What the page says of one command."""
    found = re.search(rf"^##+ {command}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, command
    return found[1]


@pytest.mark.parametrize("verb", ["evaluate", "convert", "predict"])
def test_every_flag_of_help_is_described(verb: str, command_page: str) -> None:
    flags = help_flags([verb]) - {"--help"}
    assert flags
    described = section(command_page, f"lvdet {verb}")
    assert {flag for flag in flags if f"{flag}" not in described} == set()


def test_every_flag_of_every_command_is_described(command_page: str) -> None:
    commands = dict(cli_reference.commands())
    assert {name.split()[1] for name in commands} == set(VERBS)
    for name, command in commands.items():
        described = section(command_page, name)
        for parameter in command.params:
            if parameter.param_type_name == "option" and not getattr(command, "commands", None):
                for flag in {*parameter.opts, *parameter.secondary_opts} - {"-h", "--help"}:
                    assert re.search(rf"{re.escape(flag)}\b", described), f"{name} {flag}"


def test_outputs_match_their_schemas(tmp_path: Path) -> None:
    matches_schemas(output_examples.examples(tmp_path))


@pytest.mark.long
def test_outputs_of_training_match_their_schemas(tmp_path: Path) -> None:
    matches_schemas(output_examples.trained_examples(tmp_path))


@pytest.mark.long
def test_outputs_of_a_cluster_match_their_schemas(tmp_path: Path) -> None:
    matches_schemas(output_examples.clustered_examples(tmp_path))


def matches_schemas(outputs: dict[str, list[object]]) -> None:
    """Holds every output to its schema."""
    for name, values in outputs.items():
        path = output_examples.SCHEMAS / f"{name}.schema.json"
        schema = json.loads(path.read_text(encoding="utf-8"))
        for value in values:
            assert list(json_schema.violations(value, schema)) == [], name


def test_every_schema_is_on_the_page() -> None:
    page = output_reference.page()
    names = {path.name for path in output_examples.SCHEMAS.iterdir()}
    assert set(re.findall(r"\.\./schemas/([\w.-]+)", page)) == names


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, []),
        ({"a": 1.5, "b": "x"}, []),
        ({"a": "x"}, ["$.a is string, expected number"]),
        ({"b": "x"}, ["$.a is missing"]),
        ({"a": 1, "c": 1}, ["$.c is not in the schema"]),
    ],
)
def test_a_violation_is_found(value: object, expected: list[str]) -> None:
    schema = json_schema.schema_of([{"a": 1, "b": "x"}, {"a": 0.5}])
    assert list(json_schema.violations(value, schema)) == expected


def test_a_mapping_takes_any_key() -> None:
    schema = json_schema.schema_of([{"losses": {"box": 1.0}}], ["losses"])
    assert list(json_schema.violations({"losses": {"mask": 2.0}}, schema)) == []
    assert list(json_schema.violations({"losses": {"mask": "x"}}, schema)) == [
        "$.losses.mask is string, expected number"
    ]


def test_a_type_is_added() -> None:
    schema = json_schema.schema_of([{"log": [{"memory": None, "step": 1}]}])
    schema = json_schema.with_types(schema, {"memory": "integer"})
    assert list(json_schema.violations({"log": [{"memory": 3, "step": 2}]}, schema)) == []
    assert list(json_schema.violations({"log": [{"memory": 3, "step": None}]}, schema)) == [
        "$.log[0].step is null, expected integer"
    ]


@pytest.mark.parametrize(
    ("link", "page", "expected"),
    [
        (
            "[a](docs/semantics.md#area)",
            ("CONTRIBUTING.md", "contributing.md"),
            "semantics.md#area",
        ),
        ("[a](../CONTRIBUTING.md)", ("docs/training.md", "training.md"), "contributing.md"),
        ("[a](../docs/x.md)", ("benchmarks/README.md", "benchmarks.md"), "x.md"),
        ("[a](../semantics.md)", ("docs/moving/lvis.md", "moving/lvis.md"), "../semantics.md"),
        ("[a](https://lvis.org)", ("docs/x.md", "x.md"), "https://lvis.org"),
    ],
)
def test_links_become_those_of_the_site(link: str, page: tuple[str, str], expected: str) -> None:
    assert site_pages.links_for_site(link, *page) == f"[a]({expected})"
