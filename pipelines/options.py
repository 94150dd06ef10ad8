"""Beam's options, as they stand on the command line: all of them pass through, and none is dropped in silence."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from transforms.records.errors import InputError
from transforms.records.suggestions import did_you_mean

View = TypeVar("View", bound=PipelineOptions)
LOCAL_RUNNERS = ("FnApiRunner", "DirectRunner")


def pipeline_options(arguments: Sequence[str], own: Sequence[str] = ()) -> PipelineOptions:
    """Beam's options; the default runner is Beam's local one.

    Args:
        arguments: such as `--runner=DataflowRunner --project=p`.
        own: the options of the command that passes these on, to suggest when one is misspelt.

    Raises:
        InputError: an option that neither rankbeam nor Beam knows, a value that is no value of its option, or a
            word that belongs to no option.
    """
    parser = _beam_parser()
    known = {*parser._option_string_actions, *own}  # argparse has no public list of them
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("--") and name not in known:
            raise InputError(f"unknown option {name}; {did_you_mean(name, known)}")
    _, stray = parser.parse_known_args(arguments)
    if stray:
        raise InputError(f"{stray[0]!r} belongs to no option; what is to be read comes before Beam's options")
    options = _Options(list(arguments))
    standard = options.view_as(StandardOptions)
    if standard.runner in (None, *LOCAL_RUNNERS):
        standard.runner = "FnApiRunner"  # DirectRunner would first try to download Prism
    return options


class _Options(PipelineOptions):
    """Beam's options, without parsing them all again each time that a step looks at one (a fifth of a short run)."""

    def view_as(self, cls: type[View]) -> View:
        """The options of one class; views share the values of all."""
        views = _views.setdefault(self, {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        view: View = views[cls]
        return view


_views: "WeakKeyDictionary[PipelineOptions, dict[type, Any]]" = WeakKeyDictionary()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(message)


def _beam_parser() -> argparse.ArgumentParser:
    """A parser of all of Beam's options; Beam itself only logs that it drops what it does not know."""
    parser = _Parser(conflict_handler="resolve", allow_abbrev=False)
    pending = PipelineOptions.__subclasses__()
    while pending:
        options = pending.pop()
        pending += options.__subclasses__()
        if "_add_argparse_args" in vars(options):
            options._add_argparse_args(parser)
    return parser
