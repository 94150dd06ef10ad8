"""Files of an embedding model in ONNX's format: their paths, settings, and a hash of their content.

A folder has the layout of model hubs: `model.onnx` or `onnx/model.onnx`, `tokenizer.json`, and the settings of Sentence
Transformers, if the model has these. In a folder with one model and one tokenizer, both may have other names.
"""

import hashlib
import json
import mmap
import os
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError, did_you_mean

MODELS_VARIABLE = "RANKBEAM_MODELS"  # the variable that names the folder of models

_USUAL = ("model.onnx", "onnx/model.onnx")
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}
_LIMITS = (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
_DEFAULT_LIMIT, _LARGEST_LIMIT = 512, 100_000  # tokenizers without a limit have a limit of 10^30
_NO_WEIGHTS = frozenset({"", ".onnx", ".json", ".txt", ".md"})
_EXPORTED = frozenset({"Transformer", "Pooling", "Normalize"})


def own_folder() -> str:
    return os.environ.get(MODELS_VARIABLE, "").strip() or str(_cache() / "rankbeam" / "models")


def folders_of(name: str) -> Iterator[str]:
    """The folders in which the model of this name may be, best first; nothing is downloaded."""
    yield files.join(own_folder(), name)
    home = Path(os.environ.get("HF_HOME", "").strip() or _cache() / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE", "").strip() or home / "hub") / f"models--{name.replace('/', '--')}"
    revision = hub / "refs" / "main"
    if revision.is_file():
        yield str(hub / "snapshots" / revision.read_text(encoding="utf-8").strip())


def folder_named(name: str) -> str:
    places = list(folders_of(name))
    for place in places:
        if Path(place).is_dir() if files.is_local(place) else matching.matches(files.join(place, "**")):
            return place
    known = [path.rstrip("/").rpartition("/")[2] for path in matching.matches(files.join(own_folder(), "*"))]
    hint = f"; {did_you_mean(name, known)}" if known else ""
    problem = f"no model {name!r} in {' or '.join(places)}, nor in the cache of Hugging Face{hint}"
    raise InputError(f"{problem}. Put its files there, set {MODELS_VARIABLE}, or name their folder: folder: PATH")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or Path.home() / ".cache")


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model; different times or sizes in `states` mean different content."""

    folder: Path
    model: Path
    tokenizer: Path  # as written by the library tokenizers
    states: Hashable  # time and size of every file in the folder

    @cached_property
    def content(self) -> str:
        """A hash of the bytes of model and tokenizer, independent of their paths."""
        checksum = hashlib.sha256()
        for path in [self.model, *self._weights, self.tokenizer]:
            with path.open("rb") as file:
                checksum.update(hashlib.file_digest(file, "sha256").digest())
        return checksum.hexdigest()[:32]

    @cached_property
    def pooling(self) -> str | None:
        settings = self._settings("1_Pooling/config.json")
        modes = [mode for mode, is_set in settings.items() if mode.startswith("pooling_mode_") and is_set is True]
        if not modes:
            return None
        if len(modes) > 1 or modes[0] not in _POOLINGS:
            problem = f"{' and '.join(modes)} cannot be computed; set pooling: to mean, cls or last if that is close"
            raise InputError(problem, path=str(self.folder / "1_Pooling" / "config.json"))
        return _POOLINGS[modes[0]]

    @cached_property
    def max_tokens(self) -> int:
        cut = self._settings(self.tokenizer.name).get("truncation") or {}
        limits = [*(self._settings(name).get(key) for name, key in _LIMITS), cut.get("max_length")]
        known = (int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit <= _LARGEST_LIMIT)
        return next(known, _DEFAULT_LIMIT)

    @property
    def further_layers(self) -> Sequence[str]:
        """The layers, such as Dense, that Sentence Transformers adds and a model exported without pooling lacks."""
        modules = self._settings("modules.json", list)
        names = [str(module.get("type", "")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
        return [name for name in names if name not in _EXPORTED]

    @property
    def _weights(self) -> Sequence[Path]:
        """The separate files of weights that the model names."""
        others = [path for path in sorted(self.model.parent.iterdir()) if path.is_file() and path != self.model]
        with self.model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return [path for path in others if path.suffix not in _NO_WEIGHTS and content.find(path.name.encode()) >= 0]

    def _settings(self, name: str, kind: type[Any] = dict) -> Any:
        """The settings in a file; empty if it is missing."""
        path = self.folder / name if name != self.tokenizer.name else self.tokenizer
        if not path.is_file():
            return kind()
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"is not JSON: {error}", path=str(path)) from error
        if not isinstance(value, kind):
            raise InputError(f"is not a JSON {'object' if kind is dict else 'array'}", path=str(path))
        return value


def files_in(folder: str, file: str | None = None) -> ModelFiles:
    """The files of a model in a folder, copied if it is remote; they are read again only if one has changed."""
    local = Path(folder).expanduser() if files.is_local(folder) else Path(_local_copy(folder).name)
    if not local.is_dir():
        raise InputError("is not a folder; it holds a model (.onnx) and its tokenizer.json", path=folder)
    states = [(path, path.stat()) for name in ("*", "*/*") for path in sorted(local.glob(name))]
    return _files_in(folder, local, file, tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in states))


@lru_cache(8)
def _files_in(folder: str, local: Path, file: str | None, states: Hashable) -> ModelFiles:
    models = {path.relative_to(local).as_posix(): path for path in [*local.glob("*.onnx"), *local.glob("onnx/*.onnx")]}
    model = _model(models, folder, file)
    tokenizers = [local / "tokenizer.json", model.parent / "tokenizer.json", *sorted(local.glob("*tokenizer.json"))]
    tokenizer = next((path for path in tokenizers if path.is_file()), None)
    if tokenizer is None:
        problem = "has no tokenizer.json; save the model's tokenizer there, as the library tokenizers writes it"
        raise InputError(problem, path=folder)
    return ModelFiles(local, model, tokenizer, states)


def _model(models: Mapping[str, Path], folder: str, file: str | None) -> Path:
    if not models:
        raise InputError("has no model: no file *.onnx, nor one below onnx/", path=folder)
    if file is not None and file not in models:
        raise InputError(f"has no model {file!r}; {did_you_mean(file, models)}", path=folder)
    usual = next((name for name in _USUAL if name in models), None)
    name = file or usual or (next(iter(models)) if len(models) == 1 else None)
    if name is None:
        raise InputError(f"has several models; name one: file: {' or '.join(sorted(models))}", path=folder)
    return models[name]


@lru_cache(4)
def _local_copy(folder: str) -> tempfile.TemporaryDirectory[str]:
    """Copy a folder from another filesystem; the copy is deleted with this process."""
    copy = tempfile.TemporaryDirectory(prefix="rankbeam-model-", ignore_cleanup_errors=True)
    for path in matching.matches(files.join(folder, "**")):
        target = Path(copy.name) / path.removeprefix(folder).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        with files.open_raw(path) as source, target.open("wb") as into:
            while block := source.read(1 << 22):
                into.write(block)
    return copy
