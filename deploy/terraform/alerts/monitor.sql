-- Made from deploy/alerts by `make deploy-files`; do not edit. Terraform fills in the settings.
WITH configurations AS (
SELECT * FROM `${project}.${dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
),
monitor AS (
SELECT * FROM `${project}.${dataset}.monitor` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
),
runs AS (
SELECT * FROM `${project}.${dataset}.runs`
),
run_history AS (
SELECT
  run_id,
  experiment,
  started_at,
  finished_at,
  state,
  dataset_fingerprint,
  TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
  calls,
  ledger_hits,
  failures,
  SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
  SAFE_DIVIDE(failures, calls) AS failures_per_call,
  ARRAY_LENGTH(warnings) AS warnings,
  ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
FROM runs
),
monitoring AS (
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  c.name AS configuration,
  m.metric,
  m.mode,
  m.state,
  m.alarm,
  m.change,
  m.low,
  m.high,
  m.lowest_high,
  m.highest_low,
  m.nights,
  m.since,
  m.tolerance,
  m.baseline_run,
  m.baseline_mean,
  m.queries,
  m.skipped,
  m.quarter,
  m.config_id
FROM run_history AS r
JOIN monitor AS m
  ON m.run_id = r.run_id AND m.started_at = r.started_at
JOIN configurations AS c
  ON c.run_id = m.run_id AND c.started_at = m.started_at AND c.config_id = m.config_id
)
-- Which metric of a run that ended in the last day is beyond the tolerance around its baseline, as `rankbeam monitor`
-- found?
SELECT
  CONCAT(
    experiment, ': ', metric, ' of ', configuration, ' ', state, ' since the baseline ', baseline_run, ': a change of ',
    CAST(ROUND(change, 4) AS STRING)
  ) AS message
FROM monitoring
WHERE alarm AND is_latest
  AND run_id IN (SELECT run_id FROM runs WHERE finished_at > TIMESTAMP_SUB(@run_time, INTERVAL 1 DAY))
