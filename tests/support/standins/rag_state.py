"""State of RAG Engine in a project and region: corpora, files, long-running operations; on any clock.

`rag_corpora` serves it over gRPC. Quotas are counted always and enforced if asked for; what goes wrong is decided by
names and running numbers, so that it does when it is tried again.
"""

import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from support.standins.faults import fraction

INVALID, NOT_FOUND, EXHAUSTED, BUSY, INTERNAL = 3, 5, 8, 9, 13
MOST_FILES = 10_000
Read = Callable[[str], Mapping[str, str]]
"""All objects that a URI names, a file or a folder: their URIs and texts."""


class Refused(Exception):
    """A request that is refused: number of the gRPC status, and why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Behaviour:
    """Behaviour of the service.

    Attributes:
        create_s: seconds to create a corpus.
        seconds_per_file: seconds to import a file with the whole budget of embeddings.
        most_imports: most imports that may run at once.
        embeddings_per_minute: budget that running imports share.
        models: embedding models that exist.
        lost_creates, lost_imports: number of first requests that are done but whose answer is lost.
        failed_operations: so many first imports end with an error inside the operation, half done.
        endless_imports: so many first imports run until their corpus is deleted.
        failing: share of the files that fail when they are imported for the first time.
        skipped: share of the files that are skipped when they are imported for the first time.
        broken: files whose name contains this always fail.
        shows_operations: whether it lists operations.
        exclusive: a corpus with an import that runs takes no other change.
        existing: corpora that exist from the beginning: by full name, the URIs of their files.
        locations: by name, whether each location of every project has RAG Engine.
        uploads_granted: after so many objects, Cloud Storage refuses to write more; None where it never does.
    """

    create_s: float = 0.0
    seconds_per_file: float = 0.0
    most_imports: int = 3
    embeddings_per_minute: int = 1500
    models: tuple[str, ...] = ("text-embedding-005", "text-embedding-004")
    lost_creates: int = 0
    lost_imports: int = 0
    failed_operations: int = 0
    endless_imports: int = 0
    failing: float = 0.0
    skipped: float = 0.0
    broken: str = "\0"
    shows_operations: bool = True
    exclusive: bool = False
    existing: Mapping[str, list[str]] = field(default_factory=dict)
    locations: Mapping[str, bool] = field(default_factory=dict)
    uploads_granted: int | None = None


@dataclass
class File:
    """A file of a corpus."""

    uri: str
    text: str
    size: int
    overlap: int

    @property
    def name(self) -> str:
        """Its resource name in the service."""
        return self.uri.rpartition("/")[2]

    def chunks(self) -> list[str]:
        """The text in pieces of as many words as a chunk has tokens."""
        words = self.text.split()
        step = self.size - self.overlap
        return [
            " ".join(words[start : start + self.size]) for start in range(0, max(1, len(words) - self.overlap), step)
        ]


@dataclass
class Corpus:
    """A corpus."""

    name: str
    display_name: str
    description: str
    model: str
    created: float
    files: dict[str, File] = field(default_factory=dict)


@dataclass
class Operation:
    """A long-running operation: what it does is done when it has ended."""

    name: str
    kind: str
    corpus: str
    begun: float
    ends: float
    end: Callable[["Operation"], None]
    embeddings: int = 0
    is_done: bool = False
    code: int = 0
    message: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    sink: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Seen:
    """Statistics of the service.

    Attributes:
        imports: by display name of the corpus and file, how often it was imported.
        most_imports: most imports that ran at once.
        most_embeddings: per minute that running imports asked one model for together.
        created, deleted: corpora.
    """

    imports: dict[str, dict[str, int]] = field(default_factory=dict)
    most_imports: int = 0
    most_embeddings: int = 0
    created: int = 0
    deleted: int = 0
    requests: Counter[str] = field(default_factory=Counter)


class RagState:
    """All corpora of a project and region.

    Args:
        behaviour: behaviour of the service.
        clock: seconds that never go back.
        read: the objects of Cloud Storage.
        write: writes an object of Cloud Storage.
    """

    def __init__(
        self, behaviour: Behaviour, clock: Callable[[], float], read: Read, write: Callable[[str, str], None]
    ) -> None:
        self.behaviour, self._clock, self._read, self._write = behaviour, clock, read, write
        self._corpora = {
            name: Corpus(name, "held", "", "", 0.0, {uri: File(uri, "", 1, 0) for uri in uris})
            for name, uris in behaviour.existing.items()
        }
        self._operations: dict[str, Operation] = {}
        self._numbers = itertools.count(1000)
        self._times: Counter[str] = Counter()
        self.seen = Seen()

    def corpora(self) -> list[Corpus]:
        """All of them, oldest first."""
        self._advance()
        return sorted(self._corpora.values(), key=lambda corpus: corpus.created)

    def corpus(self, name: str) -> Corpus:
        """One of them."""
        self._advance()
        if name not in self._corpora:
            raise Refused(NOT_FOUND, f"The RagCorpus {name} does not exist.")
        return self._corpora[name]

    def operation(self, name: str) -> Operation:
        """One of the operations."""
        self._advance()
        if name not in self._operations:
            raise Refused(NOT_FOUND, f"Operation {name} not found.")
        return self._operations[name]

    def operations(self, corpus: str) -> list[Operation]:
        """Those on a corpus."""
        self._advance()
        if not self.behaviour.shows_operations:
            raise Refused(INVALID, "operations of this resource are not listed")
        return [operation for operation in self._operations.values() if operation.corpus == corpus]

    def operations_of(self, corpus: str) -> list[Operation]:
        """Those on a corpus, whether the service lists them or not."""
        return [operation for operation in self._operations.values() if operation.corpus == corpus]

    def create(self, parent: str, display_name: str, description: str, endpoint: str) -> tuple[Operation, bool]:
        """Make a corpus; returns the operation, and whether its answer is lost."""
        self._advance()
        model = endpoint.rpartition("/")[2]
        if model not in self.behaviour.models:
            raise Refused(INVALID, f"The embedding model {model} does not exist.")
        name = f"{parent}/ragCorpora/{next(self._numbers)}"

        def end(operation: Operation) -> None:
            self._corpora[name] = Corpus(name, display_name, description, model, operation.ends)
            self.seen.created += 1

        operation = self._begin("create", name, self.behaviour.create_s, end)
        self._times["create"] += 1
        return operation, self._times["create"] <= self.behaviour.lost_creates

    def update(self, name: str, description: str) -> Operation:
        """Change the description of a corpus."""
        corpus = self.corpus(name)
        self._refuse_busy(name)

        def end(_: Operation) -> None:
            corpus.description = description

        return self._begin("update", name, 0.0, end)

    def delete(self, name: str) -> Operation:
        """Delete a corpus."""
        self.corpus(name)
        self._refuse_busy(name)

        def end(operation: Operation) -> None:
            self._corpora.pop(name, None)
            self.seen.deleted += 1
            for other in self._operations.values():
                if other.corpus == name and other.ends == math.inf:
                    other.ends = operation.ends

        return self._begin("delete", name, 0.0, end)

    def import_files(
        self, name: str, uris: list[str], chunking: tuple[int, int], embeddings: int, sink: str
    ) -> tuple[Operation, bool]:
        """Import files; returns the operation, and whether its answer is lost."""
        corpus = self.corpus(name)
        self._refuse_busy(name)
        running = [item for item in self._operations.values() if item.kind == "import" and not item.is_done]
        if len(running) >= self.behaviour.most_imports:
            raise Refused(EXHAUSTED, f"Quota exceeded: {len(running)} imports are running.")
        objects = {uri: text for item in uris for uri, text in self._read(item).items()}
        if not objects or len(objects) > MOST_FILES:
            raise Refused(INVALID, f"{len(objects)} files are to be imported; 1 to {MOST_FILES} can be")
        size, overlap = chunking
        if overlap >= size:
            raise Refused(INVALID, "chunk_overlap must be less than chunk_size")

        def end(operation: Operation) -> None:
            if name not in self._corpora:
                operation.code, operation.message = NOT_FOUND, f"The RagCorpus {name} does not exist."
                return
            half = list(objects)[: len(objects) // 2] if operation.code else list(objects)
            for uri in half:
                self._import(corpus, File(uri, objects[uri], size, overlap), operation)
            self._write(sink, "".join(f"{json.dumps(result)}\n" for result in operation.results))

        seconds = len(objects) * self.behaviour.seconds_per_file * self.behaviour.embeddings_per_minute / embeddings
        if self._times["import"] < self.behaviour.endless_imports:
            seconds = math.inf
        operation = self._begin("import", name, seconds, end)
        operation.embeddings, operation.sink = embeddings, sink
        self.seen.most_imports = max(self.seen.most_imports, len(running) + 1)
        alike = {item.name for item in self._corpora.values() if item.model == corpus.model}  # each has its own quota
        together = sum(item.embeddings for item in running if item.corpus in alike) + embeddings
        self.seen.most_embeddings = max(self.seen.most_embeddings, together)
        self._times["import"] += 1
        if self._times["import"] <= self.behaviour.failed_operations:
            operation.code, operation.message = INTERNAL, "Internal error encountered."
        lost = self.behaviour.failed_operations < self._times["import"]
        return operation, lost and self._times[
            "import"
        ] <= self.behaviour.failed_operations + self.behaviour.lost_imports

    def _refuse_busy(self, name: str) -> None:
        running = [
            operation for operation in self._operations.values() if operation.kind == "import" and not operation.is_done
        ]
        if self.behaviour.exclusive and any(operation.corpus == name for operation in running):
            raise Refused(BUSY, f"FAILED_PRECONDITION: There are other operations running on the RagCorpus {name}.")

    def retrieve(self, name: str, query: str, top_k: int) -> list[tuple[float, File, str]]:
        """The nearest chunks: distance, file, text."""
        words = set(re.findall(r"\w+", query.lower()))
        chunks = [(file, chunk) for file in self.corpus(name).files.values() for chunk in file.chunks()]
        rated = [(_distance(words, chunk), file.uri, file, chunk) for file, chunk in chunks]
        nearest = sorted(rated, key=lambda rating: rating[:2])[:top_k]
        return [(distance, file, chunk) for distance, _, file, chunk in nearest if distance < 1]

    def _import(self, corpus: Corpus, file: File, operation: Operation) -> None:
        if file.uri in corpus.files:
            operation.counts["skipped"] += 1
            return
        place = f"{corpus.display_name} {file.name}"
        self._times[place] += 1
        is_first, share = self._times[place] == 1, fraction(0, place)
        if self.behaviour.broken in file.name or (is_first and share < self.behaviour.failing):
            operation.counts["failed"] += 1
            message = "the file is broken" if self.behaviour.broken in file.name else "embedding failed"
            operation.results.append({"source_uri": file.uri, "status": "FAILED", "error_message": message})
        elif is_first and share < self.behaviour.failing + self.behaviour.skipped:
            operation.counts["skipped"] += 1
        else:
            operation.counts["imported"] += 1
            corpus.files[file.uri] = file
            times = self.seen.imports.setdefault(corpus.display_name, {})
            times[file.name] = times.get(file.name, 0) + 1

    def _begin(self, kind: str, corpus: str, seconds: float, end: Callable[[Operation], None]) -> Operation:
        number = next(self._numbers)
        name = f"{corpus}/operations/{number}"
        now = self._clock()
        self._operations[name] = Operation(name, kind, corpus, now, now + seconds, end)
        return self._operations[name]

    def _advance(self) -> None:
        """End the operations whose time has come, in their order."""
        now = self._clock()
        for pending in sorted(self._operations.values(), key=lambda operation: operation.ends):
            if not pending.is_done and pending.ends <= now:
                pending.is_done = True
                pending.end(pending)

    def progress(self, operation: Operation) -> int:
        """The progress of an operation, in percent."""
        length = operation.ends - operation.begun
        return 100 if operation.is_done or not length else int(100 * (self._clock() - operation.begun) / length)

    def shown(self) -> dict[str, Any]:
        """The statistics and the current corpora, as JSON values."""
        there = [
            {"name": corpus.name, "display_name": corpus.display_name, "description": corpus.description,
             "files": len(corpus.files)}
            for corpus in self.corpora()
        ]  # fmt: skip
        return {**asdict(self.seen), "corpora": there}


def _distance(words: set[str], chunk: str) -> float:
    """A cosine distance of bags of words, with a little of the chunk's own so that no two are equal."""
    own = set(re.findall(r"\w+", chunk.lower()))
    common = len(words & own)
    noise = int.from_bytes(hashlib.blake2b(chunk.encode(), digest_size=4).digest(), "big") / 2**32
    return 1.0 if not common else 1 - common / (len(words) * len(own)) ** 0.5 + 1e-6 * noise
