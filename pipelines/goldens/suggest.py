"""Profiles that the writing model suggests from a sample of the documents: forecast, one call, a file to accept."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.profiles import suggested
from rankbeam.pipelines.goldens.stages import run_stage
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.planning import GoldensPlan, SuggestedProfiles, SuggestProfiles, sampled
from rankbeam.transforms.goldens.records.items import SourceSpan
from rankbeam.transforms.goldens.rehearsal import size_of
from rankbeam.transforms.records.errors import InputError


@dataclass(frozen=True)
class Suggestion:
    """Profiles to suggest."""

    goldens: Goldens
    source: str  # the file of goldens
    path: str  # the file to write
    sample: tuple[SourceSpan, ...]

    @property
    def work(self) -> SuggestProfiles:
        """The work of the sample."""
        return SuggestProfiles(self.goldens.asking)

    @property
    def documents(self) -> list[str]:
        return list(dict.fromkeys(span.doc_id for span in self.sample))


def suggestion_of(goldens: Goldens, plan: GoldensPlan, source: str, path: str, count: int) -> Suggestion:
    """Check everything that can be checked before the call."""
    if files.exists(path):
        raise InputError("exists; delete it, or name another file with --output", path=path)
    if (offline := goldens.writer.parameters.offline) is not None:
        problem = f"the writer {goldens.writer.name!r} is {offline}, and suggests no profiles; name another model"
        raise load(goldens.text, source).error(("writer",), problem)
    return Suggestion(goldens, source, path, sampled(plan, count))


def forecast(suggestion: Suggestion) -> tuple[str, float | None]:
    """The call for people, and its cost; None if no price is known."""
    goldens, call = suggestion.goldens, suggestion.work.call(suggestion.sample)
    is_known = any(Ledger(goldens.ledger).find({call.key or "": None}))
    size = size_of(call, is_known)
    cost = 0.0 if is_known else goldens.pools[goldens.writer.pool or ""].cost(1, size.tokens)
    head = f"{len(suggestion.sample):,} texts of {len(suggestion.documents):,} documents to {goldens.writer.name}"
    parts = [head, "0 calls, 1 in the ledger" if is_known else f"1 call, about {size.tokens.input:,} input tokens"]
    return "; ".join([*parts, *([] if cost is None else [f"cost {cost:,.4g}"])]), cost


def suggest(suggestion: Suggestion, options: PipelineOptions) -> tuple[SuggestedProfiles, list[str]]:
    """Ask the model and write the file, unless the call failed; the second value is warnings."""
    goldens, work = suggestion.goldens, suggestion.work
    cost = forecast(suggestion)[1] or 0.0
    if goldens.max_cost is not None and goldens.max_cost < cost:
        problem = f"is below the cost of the call, about {cost:,.4g}"
        raise load(goldens.text, suggestion.source).error(("max_cost",), problem)
    now = datetime.now(UTC)
    owner = Owner(f"{work.stage}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}", now.isoformat())
    folder, ledger = goldens.work_folder(0, work.stage), Ledger(goldens.ledger, owner)
    items = [("sample", suggestion.sample)]
    results = run_stage(goldens.suggesting(), ledger, items, folder, SuggestedProfiles, options)
    files.delete(folder)
    (profiles,) = results.records[:1] or [SuggestedProfiles(problem="no answer")]
    if profiles.dimensions:
        model = goldens.writer.parameters.identity(goldens.writer.kind) | {"model_version": profiles.model_version}
        files.write(suggestion.path, suggested(profiles.dimensions, model, suggestion.documents))
    return profiles, results.warnings
