"""The process of an emulator: serves on free ports until its parent is gone. `process` starts it.

It runs in the Python of `.venv-emulators`, as a script, and imports nothing of rankbeam.
"""

import asyncio
import json
import os
import re
import shutil
import sys
import threading
import time
from contextvars import ContextVar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
LOOK_AFTER_S = 0.5
RESULT = re.compile(r'SELECT (?P<columns>.*) FROM "[^"]*___bqemu_anonymous"\."anon(?P<job>\w+)"')
TOKEN = {"access_token": "nobody-checks-this", "token_type": "Bearer", "expires_in": 3600}


def serve_gcs(folder: str) -> None:
    """Serve Cloud Storage from a folder, and tokens to whoever wants one."""
    from gcp_storage_emulator.server import create_server

    storage = create_server(HOST, 0, data_dir=folder)
    storage.start()
    tokens = ThreadingHTTPServer((HOST, 0), Tokens)
    threading.Thread(target=tokens.serve_forever, daemon=True).start()
    say({"port": storage._api._httpd.server_port, "token_port": tokens.server_port})
    threading.Event().wait()


def serve_bigquery(folder: str, gcs_folder: str, project: str) -> None:
    """Serve BigQuery over REST and its Storage API over gRPC; `gs://` is a folder on disk, uploads go to another."""
    from bqemulator.config import Settings
    from bqemulator.server import EmulatorServer

    let_results_be_read()
    bind_parameters_of_scripts()
    add_columns()

    async def serve() -> None:
        server = EmulatorServer(
            Settings(
                rest_port=0,
                grpc_port=0,
                default_project_id=project,
                gcs_local_root=Path(gcs_folder),
                upload_staging_dir=Path(folder, "uploads"),
                query_cache_ttl_seconds=0,
            )
        )
        await server.start()
        say({"port": server.rest_port, "grpc_port": server.grpc_port})
        await asyncio.Event().wait()

    asyncio.run(serve())


def let_results_be_read() -> None:
    """Give the Storage API the result of a query: the emulator names a table that holds it, and makes none."""
    from bqemulator.jobs.executor import JOB_RESULTS
    from bqemulator.storage.engine import DuckDBEngine

    of_table = DuckDBEngine.fetch_arrow

    def fetch_arrow(engine: DuckDBEngine, sql: str, *more: object) -> object:
        if not (match := RESULT.fullmatch(sql)):
            return of_table(engine, sql, *more)
        result = next(table for job, table in JOB_RESULTS.items() if job.replace("-", "") == match["job"])
        return result if match["columns"] == "*" else result.select(re.findall(r'"(.+?)"', match["columns"]))

    DuckDBEngine.fetch_arrow = fetch_arrow


def bind_parameters_of_scripts() -> None:
    """Mend bqemulator: it drops the query parameters of scripts, and with them those of transactions.

    They are bound here as they are for single statements. A statement that names one before a declared variable fails.
    """
    from bqemulator.jobs import executor
    from bqemulator.scripting import interpreter

    parameters: ContextVar[Any] = ContextVar("given", default=None)
    run, bind = executor._run_query_body, interpreter.bind_parameters

    async def run_with_parameters(**arguments: Any) -> Any:
        parameters.set(arguments["query_params"])
        return await run(**arguments)

    def bind_given(sql: str, _: None) -> Any:
        return bind(sql, parameters.get())

    executor._run_query_body, interpreter.bind_parameters = run_with_parameters, bind_given


def add_columns() -> None:
    """Mend bqemulator: a column that a change of a table's resource adds was in the resource only, not in the table."""
    from bqemulator.api.routes.tables import _field_to_rest, bq_schema_to_duckdb_columns
    from bqemulator.catalog.memory_repository import MemoryCatalogRepository
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    update = MemoryCatalogRepository.update_table

    def update_and_add(catalog: MemoryCatalogRepository, table: Any) -> Any:
        before = catalog.get_table(table.project_id, table.dataset_id, table.table_id)
        known = {field.name for field in before.schema_.fields} if before.table_type == "TABLE" else set()
        added = [_field_to_rest(field) for field in table.schema_.fields if field.name not in known]
        reference = quoted_table_ref(table.project_id, table.dataset_id, table.table_id)
        for name, kind in bq_schema_to_duckdb_columns(added) if known else ():
            catalog._engine.execute(f'ALTER TABLE {reference} ADD COLUMN IF NOT EXISTS "{name}" {kind}')
        return update(catalog, table)

    MemoryCatalogRepository.update_table = update_and_add


class Tokens(BaseHTTPRequestHandler):
    """Gives the same access token to everybody, as an OAuth token endpoint would."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps(TOKEN).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def watch(parent: int, folder: str) -> None:
    """End with the parent, even if a process that it forked still holds the other end of stdin."""
    while os.getppid() == parent:
        time.sleep(LOOK_AFTER_S)
    end(folder)


def listen(folder: str) -> None:
    """End with stdin."""
    sys.stdin.read()
    end(folder)


def end(folder: str) -> None:
    """End without the parent, which can no longer remove the folder that it made."""
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def say(message: object) -> None:
    """Write a line that the parent reads."""
    os.write(ANSWERS, f"{json.dumps(message)}\n".encode())


if __name__ == "__main__":
    kind, parent, folder, *arguments = sys.argv[1:]
    # What the emulators print belongs into the log, beside what they write to standard error.
    ANSWERS = os.dup(1)
    os.dup2(2, 1)
    for target, target_arguments in ((watch, (int(parent), folder)), (listen, (folder,))):
        threading.Thread(target=target, args=target_arguments, daemon=True).start()
    {"gcs": serve_gcs, "bigquery": serve_bigquery}[kind](folder, *arguments)
