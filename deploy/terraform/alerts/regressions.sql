-- Made from deploy/alerts by `make deploy-files`; do not edit. Terraform fills in the settings.
WITH configuration_metrics AS (
SELECT * FROM `${project}.${dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
),
configurations AS (
SELECT * FROM `${project}.${dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
),
query_metrics AS (
SELECT * FROM `${project}.${dataset}.query_metrics` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
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
per_query AS (
SELECT
  r.run_id,
  r.experiment,
  q.started_at,
  r.is_latest,
  c.name AS configuration,
  q.query_id,
  q.text,
  COALESCE(item.status, q.status) AS status,
  item.reason,
  q.slices,
  item.metric,
  item.value,
  item.tie_lowest,
  item.tie_highest,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN query_metrics AS q
  ON q.run_id = r.run_id AND q.started_at = r.started_at AND q.config_id = c.config_id
CROSS JOIN UNNEST(q.metrics) AS item
),
trend AS (
SELECT
  p.experiment,
  p.dataset_fingerprint,
  p.configuration,
  p.dialect,
  p.metric,
  p.started_at,
  p.run_id,
  p.is_latest,
  p.mean,
  p.ci_low,
  p.ci_high,
  p.std_error,
  p.queries,
  p.empty,
  p.failed,
  p.undefined,
  p.missing,
  p.lowest,
  p.highest,
  p.sign,
  b.mean AS previous_mean,
  p.mean - b.mean AS change,
  p.config_id <> b.config_id AS parameters_changed,
  b.run_id AS previous_run_id,
  b.started_at AS previous_started_at,
  p.config_id,
  b.config_id AS previous_config_id
FROM (
  SELECT
    r.experiment,
    r.dataset_fingerprint,
    r.is_latest,
    c.name AS configuration,
    c.dialect,
    m.run_id,
    m.started_at,
    m.config_id,
    m.slice,
    m.metric,
    m.mean,
    m.ci_low,
    m.ci_high,
    m.std_error,
    m.queries,
    m.empty,
    m.failed,
    COALESCE(m.undefined, 0) AS undefined,
    m.missing,
    m.lowest,
    m.highest,
    IF(
      COALESCE(
        m.lower_is_better,
        REGEXP_CONTAINS(
          m.metric,
          '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\\b'
        )
      ),
      -1,
      1
    ) AS sign,
    COALESCE(
      LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_name,
      LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_parameters
    ) AS previous_run_id,
    COALESCE(
      LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_name,
      LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_parameters
    ) AS previous_started_at,
    COALESCE(
      LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_name,
      LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_parameters
    ) AS previous_config_id
  FROM run_history AS r
  JOIN configurations AS c
    ON c.run_id = r.run_id AND c.started_at = r.started_at
  JOIN configuration_metrics AS m
    ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id
  WHERE
    m.slice = 'all'
  WINDOW of_name AS (
    PARTITION BY r.experiment, r.dataset_fingerprint, c.name, m.metric
    ORDER BY r.started_at, r.run_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ), of_parameters AS (
    PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric
    ORDER BY r.started_at, r.run_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
) AS p
LEFT JOIN configuration_metrics AS b
  ON b.run_id = p.previous_run_id
  AND b.started_at = p.previous_started_at
  AND b.config_id = p.previous_config_id
  AND b.slice = p.slice
  AND b.metric = p.metric
),
query_changes AS (
SELECT
  t.run_id,
  t.experiment,
  q.started_at,
  t.is_latest,
  t.configuration,
  t.metric,
  q.query_id,
  q.text,
  COALESCE(v.status, q.status) AS status,
  COALESCE(w.status, b.status) AS previous_status,
  v.value,
  w.value AS previous_value,
  v.value - w.value AS difference,
  q.slices,
  t.previous_run_id,
  t.previous_started_at,
  t.config_id,
  t.previous_config_id
FROM trend AS t
JOIN query_metrics AS q
  ON q.run_id = t.run_id AND q.started_at = t.started_at AND q.config_id = t.config_id
JOIN query_metrics AS b
  ON b.run_id = t.previous_run_id
  AND b.started_at = t.previous_started_at
  AND b.config_id = t.previous_config_id
  AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = t.run_id
  AND v.started_at = t.started_at
  AND v.config_id = t.config_id
  AND v.query_id = q.query_id
  AND v.metric = t.metric
LEFT JOIN per_query AS w
  ON w.run_id = t.previous_run_id
  AND w.started_at = t.previous_started_at
  AND w.config_id = t.previous_config_id
  AND w.query_id = q.query_id
  AND w.metric = t.metric
),
regressions AS (
SELECT
  run_id,
  experiment,
  started_at,
  is_latest,
  configuration,
  dialect,
  metric,
  mean,
  previous_mean,
  difference,
  std_error,
  IF(queries < 20, NULL, difference - 1.96 * std_error) AS ci_low,
  IF(queries < 20, NULL, difference + 1.96 * std_error) AS ci_high,
  CASE
    WHEN queries = 0
    THEN 'nothing to compare'
    WHEN better + worse = 0
    THEN 'same'
    WHEN queries < 20
    THEN 'unclear'
    WHEN sign * difference + 1.96 * std_error < 0
    THEN 'worse'
    WHEN sign * difference - 1.96 * std_error > 0
    THEN 'better'
    ELSE 'unclear'
  END AS verdict,
  queries,
  unpaired,
  better,
  worse,
  queries - better - worse AS same,
  parameters_changed,
  previous_run_id,
  previous_started_at,
  config_id,
  previous_config_id
FROM (
  SELECT
    t.run_id,
    t.experiment,
    t.started_at,
    t.is_latest,
    t.configuration,
    t.dialect,
    t.metric,
    t.parameters_changed,
    t.previous_run_id,
    t.previous_started_at,
    t.config_id,
    t.previous_config_id,
    t.sign,
    AVG(IF(q.difference IS NULL, NULL, q.value)) AS mean,
    AVG(IF(q.difference IS NULL, NULL, q.previous_value)) AS previous_mean,
    AVG(q.difference) AS difference,
    SAFE_DIVIDE(STDDEV_SAMP(q.difference), SQRT(COUNT(q.difference))) AS std_error,
    COUNT(q.difference) AS queries,
    COUNT(q.query_id) - COUNT(q.difference) AS unpaired,
    COUNT(IF(t.sign * q.difference > 0, 1, NULL)) AS better,
    COUNT(IF(t.sign * q.difference < 0, 1, NULL)) AS worse
  FROM trend AS t
  LEFT JOIN query_changes AS q
    ON q.run_id = t.run_id
    AND q.started_at = t.started_at
    AND q.config_id = t.config_id
    AND q.metric = t.metric
  GROUP BY
    t.run_id,
    t.experiment,
    t.started_at,
    t.is_latest,
    t.configuration,
    t.dialect,
    t.metric,
    t.parameters_changed,
    t.previous_run_id,
    t.previous_started_at,
    t.config_id,
    t.previous_config_id,
    t.sign
) AS changes
)
-- Which configuration of a run that ended in the last day is worse than in its previous run, by more than chance? One
-- configuration and metric at a time: with many of them, expect some by chance, and watch `monitor` instead.
SELECT
  CONCAT(
    experiment, ': ', configuration, ' is worse by ', metric, ': ', CAST(ROUND(mean, 4) AS STRING), ' after ',
    CAST(ROUND(previous_mean, 4) AS STRING), ' over the same ', CAST(queries AS STRING), ' queries'
  ) AS message
FROM regressions
WHERE verdict = 'worse' AND is_latest
  AND run_id IN (SELECT run_id FROM runs WHERE finished_at > TIMESTAMP_SUB(@run_time, INTERVAL 1 DAY))
