"""What workers install: a wheel of the rankbeam that is running, made without network and without build tools.

It holds the very modules that submit the job, whether they were installed from a wheel or stand in a checkout, changes
that were not committed included. What rankbeam depends on stands in the wheel's metadata, and pip on the workers
installs it. They use neither duckdb nor jinja2, rich and click, which an image of one's own may leave out.
"""

import base64
import hashlib
import zipfile
from importlib import import_module
from importlib.metadata import Distribution, distributions
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, WorkerOptions

_NAME = "rankbeam"
_CODE = ("pipelines", "transforms")
_DATA = ("deploy/bigquery", "deploy/duckdb")
_TABLES = ("entry_points.txt", "top_level.txt")
_WHEEL = "Wheel-Version: 1.0\nGenerator: rankbeam\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_MADE = (1980, 1, 1, 0, 0, 0)  # the same code makes the same file, which Beam then need not upload again


def stage(options: PipelineOptions, folder: str) -> None:
    """Have the workers install rankbeam, unless the options say where they get it from.

    Those are `--setup_file`, `--sdk_container_image`, and an `--extra_package` that is named rankbeam-….

    Args:
        options: Beam's options, which get one more package.
        folder: where the wheel may lie until the job is submitted.
    """
    setup = options.view_as(SetupOptions)
    given = setup.extra_packages or []
    named = any(Path(path).name.startswith(f"{_NAME}-") for path in given)
    if not (named or setup.setup_file or options.view_as(WorkerOptions).sdk_container_image):
        setup.extra_packages = [*given, write_wheel(folder)]


def write_wheel(folder: str) -> str:
    """Write a wheel of what is running; returns its path."""
    known = list(distributions(name=_NAME))  # a checkout that Python was started in may come before what is installed
    found = next((each for each in known if each.read_text("METADATA") is not None), known[0])
    version = found.version.replace("-", "_")
    about = f"{_NAME}-{version}.dist-info"
    content = _code() | _metadata(found, about)
    record = "".join(f"{name},{_digest(data)},{len(data)}\n" for name, data in content.items())
    content[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    path = Path(folder) / f"{_NAME}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, _MADE), data, zipfile.ZIP_DEFLATED)
    return str(path)


def _code() -> dict[str, bytes]:
    """Every file of the package, by its path in the archive."""
    folder = Path(str(import_module(_NAME).__file__)).parent
    paths = [path for path in folder.glob("*") if path.is_file()]
    for part in _CODE:  # in a checkout these are links to folders, into which rglob goes only from here
        paths += [path for path in (folder / part).rglob("*") if path.suffix != ".pyc" and path.is_file()]
    for part in _DATA:
        paths += (folder / part).glob("*.sql")
    found = {path.relative_to(folder.parent).as_posix(): path for path in paths}
    return {name: found[name].read_bytes() for name in sorted(found)}


def _metadata(found: Distribution, about: str) -> dict[str, bytes]:
    texts = {name: found.read_text(name) for name in _TABLES}
    texts |= {"WHEEL": _WHEEL, "METADATA": found.read_text("METADATA") or found.read_text("PKG-INFO")}
    licences = {
        f"{about}/licenses/{file.name}": Path(str(file.locate())).read_bytes()
        for file in found.files or ()
        if file.parent.name == "licenses" and file.parent.parent.suffix == ".dist-info"
    }
    return licences | {f"{about}/{name}": text.encode() for name, text in texts.items() if text is not None}


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={digest}"
