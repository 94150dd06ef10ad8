"""Emulators of Google Cloud Storage and BigQuery, from PyPI, in an environment and in processes of their own.

    with cloud() as google:
        bucket = google.gcs.bucket()
        subprocess.run([...], env={**os.environ, **google.environment})

Tests use the fixtures in `fixtures`. The Makefile installs `.venv-emulators` from `requirements.txt`.

What gcp-storage-emulator 2026.7.19 gets wrong, measured through google-cloud-storage 3.17:
- Generation preconditions are ignored: whoever writes or deletes last wins.
- An object `a` beside an object `a/b` is not possible: the connection breaks, and the client tries again for 120 s.
- A list has one page, whatever page size is asked for. Requests are answered one after the other.

What bqemulator 1.4.0 gets wrong, measured through google-cloud-bigquery 3.47:
- A load takes Parquet columns by their place, not by their name, and all of them: it adds no columns, and a nullable
  one may not lack. It does not refuse nulls in REQUIRED columns, nor a second job of the same id, which loads again.
- A load finds no schema by itself, and drops the partitions and clusters of a table that it makes. Make tables first.
- `table$partition` is refused. `CREATE TABLE … CLUSTER BY` forgets the clusters, `create_table` keeps them.
- Transactions roll back when an error ends the script; but in `EXCEPTION WHEN ERROR` it is too late for ROLLBACK: what
  was done stays. `RAISE` is an internal error, which the client asks again until its deadline, and rolls nothing back.
  Others see what a transaction did before it is committed; two at once never conflict.
- Scripts have no child jobs, and know no `@@error.message`, `ASSERT`, or `EXECUTE IMMEDIATE … USING`. Their query
  parameters were dropped: `server` mends that.
- MERGE does not know `INSERT ROW`; it does know columns and values, and `ON FALSE`.
- Unqualified fields of an unnested array of structs are not found in a subquery: name them `item.field`.
- A query's `destination` exists on paper only, and so did columns that `update_table` adds: `server` mends that, but
  not for fields of records. `maximum_bytes_billed` is ignored.
- INFORMATION_SCHEMA has TABLES, COLUMNS, VIEWS and PARTITIONS (of wrong partitions), but not the JOBS of a region.
- EXPORT DATA writes files that the emulator of Cloud Storage does not list.
- Its Storage Read API ignores the offset of `read_rows`, reads views too (the real one refuses them), and estimates no
  rows. As in BigQuery, a table below 1 MB has one stream, and an empty one none. The tables of query results, which
  it names, were not there: `server` mends that.

google-auth looks up regions at `iamcredentials.googleapis.com`, in the background and whatever the credentials file
says. Offline that writes three warnings of urllib3 to standard error; nothing waits for it.
"""

from support.emulators.services import STORAGE_READ_HOST, BigQuery, Cloud, Gcs, bigquery, cloud, gcs

__all__ = ["STORAGE_READ_HOST", "BigQuery", "Cloud", "Gcs", "bigquery", "cloud", "gcs"]
