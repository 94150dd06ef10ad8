"""Locations of data: BigQuery loads files into a dataset only from buckets in the dataset's location."""

import re
from typing import Any

from rankbeam.transforms.clients.bigquery.errors import BigQueryError
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.session import IMPATIENT, Patience, Session
from rankbeam.transforms.clients.storage import gcs
from rankbeam.transforms.records.errors import InputError

_REGION = re.compile(r"[A-Z]+-[A-Z]+[0-9]+")
_FROM_ANYWHERE = "US"
"""The one location of datasets that takes files from any bucket."""


def refuse_apart(output: str, dataset: DatasetName, patience: Patience = IMPATIENT) -> None:
    """Check, as far as the locations are known, that files of a folder can be loaded into a dataset.

    An account that may write objects may lack the permission to read their bucket's location; nothing is refused then.
    """
    if not output.startswith(gcs.SCHEME):
        return
    name = output.removeprefix(gcs.SCHEME).partition("/")[0]
    bucket = _bucket(output, name)
    if bucket is None or not bucket.location:
        return
    try:
        place = Session(dataset, patience).location
    except BigQueryError as error:
        raise InputError(f"{dataset}: {error.advice(dataset)}") from error
    if not can_load(place, bucket.location, tuple(bucket.data_locations or ())):
        problem = f"the bucket {name} is in {bucket.location}, and the dataset {dataset} in {place}"
        advice = "BigQuery loads only from where the dataset is; choose another bucket or another dataset"
        raise InputError(f"{problem}: {advice}", path=output)


def can_load(dataset: str, bucket: str, regions: tuple[str, ...] = ()) -> bool:
    """Return whether BigQuery may load files of a bucket; False only where it surely does not.

    >>> can_load("europe-west1", "EUROPE-WEST1"), can_load("EU", "EUROPE-WEST4"), can_load("US", "ASIA")
    (True, True, True)
    >>> can_load("us-central1", "US-EAST1"), can_load("EU", "US"), can_load("europe-west1", "US")
    (False, False, False)
    """
    dataset, places = dataset.upper(), {bucket.upper(), *(region.upper() for region in regions)}
    if dataset in (_FROM_ANYWHERE, *places):
        return True
    if _REGION.fullmatch(dataset) and all(map(_REGION.fullmatch, places)):
        return False
    return any(_continent(dataset) == _continent(place) for place in places)


def _continent(place: str) -> str:
    """The two letters that regions, pairs of regions and larger areas of a continent have in common.

    >>> _continent("EUROPE-WEST1") == _continent("EUR4") == _continent("EU"), _continent("NAM4") == _continent("US")
    (True, True)
    """
    return "US" if place.startswith(("NAM", "NORTHAMERICA", "US")) else place[:2]


def _bucket(output: str, name: str) -> Any | None:
    """The bucket; None if it is missing or its metadata may not be read."""
    from apache_beam.io.gcp.gcsio import GcsIO

    gcs.prepare(output)
    try:
        return GcsIO().get_bucket(name)
    except gcs.errors(output):  # a missing bucket is refused where it is written to
        return None
