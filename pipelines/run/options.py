"""Beam's options from the command line: all of them pass through, and unknown ones are refused."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
    StandardOptions,
)

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

View = TypeVar("View", bound=PipelineOptions)
LOCAL_RUNNERS = ("FnApiRunner", "DirectRunner")
_SAME_MACHINE = re.compile(r"(.*://)?(\[?(auto|local)\b.*|embed|localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?/?")


def pipeline_options(arguments: Sequence[str], own: Sequence[str] = ()) -> PipelineOptions:
    """Beam's options; the default runner is Beam's local one.

    Args:
        arguments: such as `--runner=DataflowRunner --project=p`.
        own: the options of the command that passes these on, to suggest when one is misspelt.

    Raises:
        InputError: neither rankbeam nor Beam knows an option, an option has an invalid value, or a word is neither an
            option nor the value of one.
    """
    parser = _beam_parser()
    known = {*parser._option_string_actions, *own}  # argparse has no public list of them
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("--") and name not in known:
            raise InputError(f"unknown option {name}; {did_you_mean(name, known)}")
    _, stray = parser.parse_known_args(arguments)
    if stray:
        raise InputError(f"{stray[0]!r} is not an option; put files before Beam's options")
    options = _Options(list(arguments))
    standard = options.view_as(StandardOptions)
    if standard.runner in (None, *LOCAL_RUNNERS):
        standard.runner = "FnApiRunner"  # DirectRunner would first try to download Prism
    return options


def is_dataflow(options: PipelineOptions) -> bool:
    """Whether the options submit a job to Dataflow."""
    return _runner(options) == "DataflowRunner"


def works_elsewhere(options: PipelineOptions) -> bool:
    """Whether workers run on other machines, which do not have this machine's files.

    Where Flink, Spark or the job server run on this machine, their workers do so too, unless they run in containers.

    >>> [works_elsewhere(PipelineOptions([f"--runner={name}"])) for name in ("FnApiRunner", "DataflowRunner")]
    [False, True]
    >>> flink = ["--runner=FlinkRunner", "--flink_master"]
    >>> [works_elsewhere(PipelineOptions([*flink, place])) for place in ("[local]", "localhost:8081", "flink:8081")]
    [False, False, True]
    """
    if is_dataflow(options):
        return True
    portable = options.view_as(PortableOptions)
    places = {
        "PortableRunner": portable.job_endpoint,
        "FlinkRunner": options.view_as(FlinkRunnerOptions).flink_master,
        "SparkRunner": options.view_as(SparkRunnerOptions).spark_master_url,
    }
    if _runner(options) not in places or portable.environment_type == "LOOPBACK":
        return False
    named = [places[_runner(options)], portable.environment_config if portable.environment_type == "EXTERNAL" else None]
    here = all(_SAME_MACHINE.fullmatch(place) for place in named if place is not None)
    return not here or portable.environment_type == "DOCKER"


def _runner(options: PipelineOptions) -> str:
    """The runner's class name, without its module."""
    return str(options.view_as(StandardOptions).runner).rpartition(".")[2]


class _Options(PipelineOptions):
    """Beam's options, parsed once: parsing them again for every step would take a fifth of a short run."""

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
    """A parser of all of Beam's options; Beam itself only logs unknown options and drops them."""
    parser = _Parser(conflict_handler="resolve", allow_abbrev=False)
    pending = PipelineOptions.__subclasses__()
    while pending:
        options = pending.pop()
        pending += options.__subclasses__()
        if "_add_argparse_args" in vars(options):
            options._add_argparse_args(parser)
    return parser
