-- Made from deploy/alerts by `make deploy-files`; do not edit. Terraform fills in the settings.
WITH configuration_metrics AS (
SELECT * FROM `${project}.${dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
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
run_choices AS (
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  NOT m.run_id IS NULL AS has_values,
  NOT m.run_id IS NULL
  AND ROW_NUMBER() OVER (
    PARTITION BY r.experiment, NOT m.run_id IS NULL
    ORDER BY r.started_at DESC, r.run_id DESC
  ) = 1 AS is_last_good
FROM run_history AS r
LEFT JOIN (
  SELECT DISTINCT
    run_id,
    started_at
  FROM configuration_metrics
  WHERE
    slice = 'all' AND NOT mean IS NULL
) AS m
  ON m.run_id = r.run_id AND m.started_at = r.started_at
)
-- Which experiment has no run with any value that began within the last ${hours} hours? Only runs of the last 90 days are
-- looked at. A run of which every call failed has no value, and is no fresh one.
SELECT
  CONCAT(
    'no run of ', wanted, ' with any value in ', CAST(${hours} AS STRING), ' hours; ',
    COALESCE(CONCAT('the last one began on ', CAST(began AS STRING)), 'there is none in 90 days')
  ) AS message
FROM UNNEST(${experiments}) AS wanted
LEFT JOIN (
  SELECT experiment, MAX(started_at) AS began FROM run_choices WHERE has_values GROUP BY experiment
) AS r ON r.experiment = wanted
WHERE began IS NULL OR began < TIMESTAMP_SUB(@run_time, INTERVAL ${hours} HOUR)
