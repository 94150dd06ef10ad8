"""deploy/terraform, held against the schema of the provider.

`test_deploy_provider.json` is the part of the provider's schema that is used here, made by

    export PYTHONPATH=tests
    python tests/packaging/test_terraform_schema.py cdktf_cdktf_provider_google-16.12.1-py3-none-any.whl

from a wheel on PyPI (`pip download --no-deps cdktf-cdktf-provider-google==16.12.1`; 49 MB, so no dependency of tests).
Where that package lies in .venv-emulators, or RANKBEAM_PROVIDER names its wheel, it is made again and compared."""

import io
import json
import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.data import REPOSITORY
from support.terraform import BLOCKS, MARKS, RESOURCES, SCHEMA, SCHEMA_FILE, TEXT, Block, Schema

PACKAGE = "cdktf_cdktf_provider_google"
META = {"count", "for_each", "depends_on", "lifecycle", "provider"}


# The provider's schema


def make_schema(wheel: zipfile.ZipFile | Path) -> Schema:
    """The used part of the schema, from the package's jsii assembly, a description of all its classes."""
    if isinstance(wheel, Path):
        (archive,) = (wheel / "_jsii").glob("*.tgz")
        packed = archive.read_bytes()
    else:
        (name,) = (member for member in wheel.namelist() if member.endswith(".jsii.tgz"))
        packed = wheel.read(name)
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        assembly = files.extractfile("package/.jsii")
        assert assembly is not None
        types = json.load(assembly)["types"]
    named = {match[1]: member for member in types.values() if (match := _REGISTRY.search(_summary(member)))}
    used = sorted({name.partition(".")[0] for name in RESOURCES})
    resources = {name: _resource(types, named[name]) for name in used}
    version = re.search(r"hashicorp/google/([\d.]+)/", _summary(named[used[0]]))
    assert version is not None
    provider = _block(types, "@cdktf/provider-google.provider.GoogleProviderConfig")
    return {"version": version[1], "provider": provider, "resources": resources}


_REGISTRY = re.compile(r"^Represents a \{@link \S+/docs/resources/\w+ (google_\w+)\}")


def _summary(entry: Mapping[str, Any]) -> str:
    return str(entry.get("docs", {}).get("summary", ""))


def _resource(types: Mapping[str, Any], entry: Mapping[str, Any]) -> Schema:
    attributes = {_snake(item["name"]) for item in entry["properties"] if not item["name"].endswith("Input")}
    return {**_block(types, f"{entry['fqn']}Config"), "attributes": sorted(attributes - {"tf_resource_type"})}


def _block(types: Mapping[str, Any], name: str) -> Schema:
    """The arguments and blocks that a block may have; those that it must have are `required`."""
    arguments: Schema = {}
    blocks: Schema = {}
    for item in types[name].get("properties", ()):
        required = {} if item.get("optional") else {"required": True}
        kind = _kind(item["type"])
        if kind.startswith("block"):
            inner = _block(types, kind.split(" ")[1])
            blocks[_snake(item["name"])] = {**inner, **required, "many": kind.startswith("blocks")}
        else:
            arguments[_snake(item["name"])] = {"type": kind, **required}
    return {"arguments": arguments, "blocks": blocks}


def _kind(kind: Mapping[str, Any]) -> str:
    if "union" in kind:
        (kind,) = (item for item in kind["union"]["types"] if item.get("fqn") != "cdktf.IResolvable")
    if "collection" in kind:
        element = _kind(kind["collection"]["elementtype"])
        many = kind["collection"]["kind"] == "array"
        return element.replace("block ", "blocks ") if many else f"map {element}"
    return str(kind["primitive"]) if "primitive" in kind else f"block {kind['fqn']}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _provider() -> zipfile.ZipFile | Path | None:
    if os.environ.get("RANKBEAM_PROVIDER"):
        return zipfile.ZipFile(os.environ["RANKBEAM_PROVIDER"])
    return next(REPOSITORY.glob(f".venv-emulators/lib/python*/site-packages/{PACKAGE}"), None)


def test_the_schema_is_that_of_the_provider() -> None:
    if (provider := _provider()) is None:
        pytest.skip(f"{PACKAGE} is not in .venv-emulators, and RANKBEAM_PROVIDER names no wheel")
    assert make_schema(provider) == SCHEMA


def test_the_schema_is_of_the_version_that_is_asked_for() -> None:
    (constraint,) = re.findall(r'version = "~> (\d+\.\d+)"', TEXT)
    assert SCHEMA["version"].startswith(f"{constraint}.")
    assert set(SCHEMA["resources"]) == {name.partition(".")[0] for name in RESOURCES}


@pytest.mark.parametrize("name", RESOURCES)
def test_resources_are_as_the_provider_has_them(name: str) -> None:
    assert list(problems(RESOURCES[name], SCHEMA["resources"][name.partition(".")[0]], name)) == []


def test_the_provider_is_set_up_as_it_wants() -> None:
    (block,) = (block for kind, _, block in BLOCKS if kind == "provider")
    assert list(problems(block, SCHEMA["provider"], "provider")) == []


def problems(block: Block, schema: Schema, place: str) -> Iterator[str]:
    """Arguments and blocks that the schema does not have, or has with another type, and those that are missing."""
    attributes = {name: value for name, value in block.items() if name not in MARKS | META}
    for label, dynamic in ((label, item) for block in attributes.pop("dynamic", []) for label, item in block.items()):
        attributes |= {} if label in MARKS else {label.strip('"'): dynamic["content"]}
    arguments, blocks = schema["arguments"], schema["blocks"]
    for name, value in attributes.items():
        inner = [item for item in value if isinstance(item, dict) and "__is_block__" in item] if _is_list(value) else []
        if inner and name in blocks:
            if len(inner) > 1 and not blocks[name]["many"]:
                yield f"{place}.{name}: once only"
            for item in inner:
                yield from problems(item, blocks[name], f"{place}.{name}")
        elif inner or name not in arguments:
            yield f"{place}.{name}: unknown"
        elif not _fits(value, arguments[name]["type"]):
            yield f"{place}.{name}: not a {arguments[name]['type']}: {value}"
    required = {name for name, item in (arguments | blocks).items() if item.get("required")}
    yield from (f"{place}.{name}: missing" for name in sorted(required - attributes.keys()))


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, str) and value.startswith("${"):
        return True  # an expression; its type is Terraform's to find
    if kind.startswith("map "):
        return isinstance(value, dict)
    if _is_list(value):
        return kind in ("string", "number") or kind.startswith("blocks")  # a list's type is that of its elements here
    types = {"string": str, "number": (int, float), "boolean": bool}
    return isinstance(value, types[kind]) and (kind == "boolean" or not isinstance(value, bool))


@pytest.mark.parametrize(
    ("wrong", "messages"),
    [
        ({"name": '"a"'}, ["b.location: missing"]),
        ({"name": '"a"', "location": '"US"', "colour": '"red"'}, ["b.colour: unknown"]),
        ({"name": '"a"', "location": '"US"', "force_destroy": '"no"'}, ['b.force_destroy: not a boolean: "no"']),
        ({"name": True, "location": '"US"'}, ["b.name: not a string: True"]),
        (
            {"name": '"a"', "location": '"US"', "versioning": [{"__is_block__": True}]},
            ["b.versioning.enabled: missing"],
        ),
    ],
)
def test_wrong_resources_are_found(wrong: Block, messages: list[str]) -> None:
    assert list(problems(wrong, SCHEMA["resources"]["google_storage_bucket"], "b")) == messages


if __name__ == "__main__":
    provider_schema = make_schema(zipfile.ZipFile(sys.argv[1]))
    SCHEMA_FILE.write_text(json.dumps(provider_schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")
