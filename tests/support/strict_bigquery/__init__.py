"""A BigQuery of ours, on this machine, that enforces what the published REST interface says and the emulators do not.

    with serve() as bigquery:
        bigquery.dataset("warehouse")
        bigquery.faults.append(Fault("jobs.insert", "lost", times=1))
        ...  # with BIGQUERY_EMULATOR_HOST = bigquery.url
    assert bigquery.rows("runs") == [...]

It knows datasets.get, patch, tables.get, insert, patch, delete, jobs.insert (with both kinds of upload), jobs.get,
jobs.query; of SQL it knows the statements that rankbeam writes. It is strict about:

- ids of jobs, which are never used twice, and places: a job is found only where its dataset is;
- loads: unknown columns, types, missing REQUIRED ones, lists without list inference, files that are not there;
- tables: partitioning and clustering cannot be changed, columns can only be added, etags are looked at;
- scripts: no literals, only parameters, all of them used; a transaction sees the tables as they were when it began, and
  is aborted when it has a DELETE for a table for which others had one since, be there rows to delete or not. Two that
  only add rows pass.
"""

from support.strict_bigquery.faults import Fault, Refusal
from support.strict_bigquery.server import StrictBigQuery, serve

__all__ = ["Fault", "Refusal", "StrictBigQuery", "serve"]
