"""Beam's options from the command line: all known options pass through, and unknown ones are refused."""

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.portability.api import beam_job_api_pb2
from apache_beam.runners.runner import create_runner

from rankbeam.transforms.records.errors import InputError, did_you_mean

View = TypeVar("View", bound=PipelineOptions)
LOCAL_RUNNERS = ("FnApiRunner", "DirectRunner")
_PORTABLE_RUNNERS = ("FlinkRunner", "PrismRunner", "SparkRunner", "PortableRunner")
_UNKNOWN_WORKERS = 16
_SAME_MACHINE = re.compile(r"(.*://)?(\[?(auto|local)\b.*|embed|localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?/?")


def pipeline_options(arguments: Sequence[str], own: Sequence[str] = ()) -> PipelineOptions:
    """Beam's options; the default runner is Beam's local one.

    A job server has options of its own: if one runs the pipeline, `refuse_unknown` is called once it is known.
    """
    _beam_parser().parse_known_args(arguments)  # refuses invalid values
    options = _Options(list(arguments))
    standard = options.view_as(StandardOptions)
    if standard.runner in (None, *LOCAL_RUNNERS):
        standard.runner = "FnApiRunner"  # DirectRunner would first try to download Prism
    if is_portable(options):
        _set_workers(options)
    else:
        refuse_unknown(arguments, own)
    return options


def refuse_unknown(arguments: Sequence[str], own: Sequence[str] = (), of_server: Iterable[Any] = ()) -> None:
    """Refuse options that neither rankbeam nor Beam nor a job server knows."""
    options_of_server = list(of_server)
    parser = _parser_of(_classes()) if options_of_server else _beam_parser()
    for option in options_of_server:
        if f"--{option.name}" not in parser._option_string_actions:  # argparse has no public list of them
            _add(parser, option)
    known = {*parser._option_string_actions, *own}
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("--") and name not in known:
            raise InputError(f"unknown option {name}; {nearest(name, known)}")
    _, stray = parser.parse_known_args(arguments)
    if stray:
        raise InputError(f"{stray[0]!r} is not an option; put files before Beam's options")


def refuse_invalid(options: PipelineOptions) -> None:
    """Refuse what Beam itself would refuse, but only once corpora are built and rows of an earlier run are deleted."""
    try:
        runner = create_runner(str(options.view_as(StandardOptions).runner))
    except (AttributeError, ImportError, ValueError) as error:
        raise InputError(str(error)) from error
    if problems := PipelineOptionsValidator(options, runner).validate():
        raise InputError("; ".join(problems))


def nearest(name: str, known: Iterable[str]) -> str:
    """The known option nearest to a misspelt one; Beam has too many to list all.

    >>> nearest("--paralelism", ["--parallelism", "--runner"]), nearest("--zzz", ["--parallelism", "--runner"])
    ("did you mean '--parallelism'?", 'Beam and the runner have none of a similar name')
    """
    suggestion = did_you_mean(name, known)
    return suggestion if suggestion.startswith("did you mean") else "Beam and the runner have none of a similar name"


def runner_name(options: PipelineOptions) -> str:
    """The runner's class name, without its module."""
    return str(options.view_as(StandardOptions).runner).rpartition(".")[2]


def is_portable(options: PipelineOptions) -> bool:
    """Return whether a job server runs the pipeline in a process of its own.

    >>> [is_portable(PipelineOptions([f"--runner={name}"])) for name in ("FlinkRunner", "PrismRunner", "FnApiRunner")]
    [True, True, False]
    """
    is_embedded = options.view_as(PortableOptions).job_endpoint == "embed"
    return runner_name(options) in _PORTABLE_RUNNERS and not is_embedded


def is_dataflow(options: PipelineOptions) -> bool:
    return runner_name(options) == "DataflowRunner"


def workers_of(options: PipelineOptions) -> int:
    """Maximum number of parallel workers, as far as the options show.

    >>> flink = ["--runner=FlinkRunner"]
    >>> [workers_of(PipelineOptions(each)) for each in (["--direct_num_workers=2"], [*flink, "--parallelism=4"], flink)]
    [2, 4, 16]
    """
    if runner_name(options) in (*LOCAL_RUNNERS, "None"):
        return options.view_as(DirectOptions).direct_num_workers or os.cpu_count() or 1
    parallelism: int = options.view_as(FlinkRunnerOptions).parallelism
    if is_dataflow(options):
        parallelism = options.view_as(WorkerOptions).max_num_workers or 0
    return parallelism if parallelism > 0 else _UNKNOWN_WORKERS


def works_elsewhere(options: PipelineOptions) -> bool:
    """Return whether workers run on other machines, which do not have this machine's files.

    If Flink, Spark or the job server run on this machine, so do their workers, unless they run in containers.

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
        "PrismRunner": portable.job_endpoint,
        "FlinkRunner": options.view_as(FlinkRunnerOptions).flink_master,
        "SparkRunner": options.view_as(SparkRunnerOptions).spark_master_url,
    }
    if runner_name(options) not in places or portable.environment_type == "LOOPBACK":
        return False
    named = [
        places[runner_name(options)],
        portable.environment_config if portable.environment_type == "EXTERNAL" else None,
    ]
    here = all(_SAME_MACHINE.fullmatch(place) for place in named if place is not None)
    return not here or portable.environment_type == "DOCKER"


def has_workers_elsewhere(options: PipelineOptions) -> bool:
    """Return whether the workers are processes that this one did not start.

    >>> flink = ["--runner=FlinkRunner", "--environment_type"]
    >>> [has_workers_elsewhere(PipelineOptions([*flink, kind])) for kind in ("LOOPBACK", "EXTERNAL")]
    [False, True]
    """
    is_external = is_portable(options) and options.view_as(PortableOptions).environment_type != "LOOPBACK"
    return is_dataflow(options) or is_external


def _set_workers(options: PipelineOptions) -> None:
    """Run workers in this process if the engine is on this machine and no other environment is named.

    Beam's own default is a container with Beam alone.
    """
    portable = options.view_as(PortableOptions)
    settings = (
        portable.environment_type,
        portable.environment_config,
        options.view_as(WorkerOptions).sdk_container_image,
    )
    if not any(settings) and not works_elsewhere(options):
        portable.environment_type = "LOOPBACK"


def _add(parser: argparse.ArgumentParser, option: Any) -> None:
    """Add an option of a job server to a parser, as Beam does when it submits the job."""
    kind = beam_job_api_pb2.PipelineOptionType
    if option.type == kind.BOOLEAN:
        parser.add_argument(
            f"--{option.name}", action="store_false" if option.default_value == "true" else "store_true"
        )
    elif option.type == kind.INTEGER:
        parser.add_argument(f"--{option.name}", type=int)
    else:
        parser.add_argument(f"--{option.name}", action="append" if option.type == kind.ARRAY else "store")


class _Options(PipelineOptions):
    """Beam's options, parsed once: parsing them again for every step would take a fifth of a short run."""

    def view_as(self, cls: type[View]) -> View:
        """The options of one class; all views share their values."""
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
    """A parser of all Beam options, built once: this takes a twentieth of a short run, and packages may add options.

    Beam itself only logs unknown options and drops them.
    """
    return _parser_made_once(_classes())


def _classes() -> tuple[type[PipelineOptions], ...]:
    pending, classes = PipelineOptions.__subclasses__(), []
    while pending:
        classes.append(pending.pop())
        pending += classes[-1].__subclasses__()
    return tuple(classes)


def _parser_of(classes: Sequence[type[PipelineOptions]]) -> argparse.ArgumentParser:
    parser = _Parser(conflict_handler="resolve", allow_abbrev=False)
    for options in classes:
        if "_add_argparse_args" in vars(options):
            options._add_argparse_args(parser)
    return parser


_parser_made_once = lru_cache(maxsize=1)(_parser_of)
