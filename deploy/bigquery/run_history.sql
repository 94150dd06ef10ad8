-- Which runs are there, which is the latest of each experiment, and what did each one take?
-- `ledger_share` is the part of all requests that an earlier run had paid for.
SELECT
  run_id, experiment, started_at, finished_at, state, dataset_fingerprint,
  TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
  calls, ledger_hits, failures,
  SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
  SAFE_DIVIDE(failures, calls) AS failures_per_call,
  ARRAY_LENGTH(warnings) AS warnings,
  ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
FROM runs
