"""The prompts that write and check: package data, one file a step and version."""

from collections.abc import Mapping
from functools import cache

from rankbeam.transforms.goldens.records import forms
from rankbeam.transforms.records.calls.template import Template, newest


@cache
def templates() -> Mapping[str, Template]:
    """By step, its newest template."""
    return newest("rankbeam.transforms.goldens", forms.schema)
