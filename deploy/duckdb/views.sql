-- Made from deploy/bigquery by python -m transforms.clients.views, and not edited by hand.
-- sha256 4434440072e6136851bac81410533441a267e22681605d0805dd8344321eb8ba

CREATE VIEW run_history AS
SELECT
  run_id,
  experiment,
  started_at,
  finished_at,
  state,
  dataset_fingerprint,
  DATE_DIFF('MICROSECOND', started_at, finished_at) / 1000000 AS duration_s,
  calls,
  ledger_hits,
  failures,
  CASE
    WHEN (
      calls + ledger_hits
    ) <> 0
    THEN ledger_hits / (
      calls + ledger_hits
    )
    ELSE NULL
  END AS ledger_share,
  CASE WHEN calls <> 0 THEN failures / calls ELSE NULL END AS failures_per_call,
  ARRAY_LENGTH(warnings) AS warnings,
  ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
FROM runs;

CREATE VIEW configuration_history AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  r.dataset_fingerprint,
  c.config_id,
  c.name AS configuration,
  c.position,
  c.retriever,
  c.parameters,
  c.derived_from,
  LAG(r.run_id) OVER earlier AS previous_run_id,
  LAG(r.started_at) OVER earlier AS previous_started_at,
  LAG(c.config_id) OVER earlier AS previous_config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id
WINDOW earlier AS (
  PARTITION BY r.experiment, r.dataset_fingerprint, c.name
  ORDER BY r.started_at NULLS FIRST, r.run_id NULLS FIRST
);

CREATE VIEW cost AS
SELECT
  TO_TIMESTAMP(hours * 3600) AS started_hour,
  CAST(CAST('1970-01-01' AS DATE) + INTERVAL (hours // 24) DAY AS DATE) AS started_day,
  experiment,
  COUNT(*) AS runs,
  SUM(calls) AS calls,
  SUM(ledger_hits) AS ledger_hits,
  SUM(failures) AS failures,
  SUM(duration_s) AS duration_s,
  CASE
    WHEN (
      SUM(calls) + SUM(ledger_hits)
    ) <> 0
    THEN SUM(ledger_hits) / (
      SUM(calls) + SUM(ledger_hits)
    )
    ELSE NULL
  END AS ledger_share
FROM (
  SELECT
    experiment,
    calls,
    ledger_hits,
    failures,
    duration_s,
    EPOCH_US(started_at) // 3600000000 AS hours
  FROM run_history
) AS r
GROUP BY
  hours,
  experiment;

CREATE VIEW coverage AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  c.name AS configuration,
  c.retriever,
  c.position,
  c.config_id,
  m.queries,
  m.empty,
  m.failed,
  m.missing,
  CASE WHEN m.queries <> 0 THEN m.empty / m.queries ELSE NULL END AS empty_rate,
  CASE
    WHEN (
      m.queries + m.failed
    ) <> 0
    THEN m.failed / (
      m.queries + m.failed
    )
    ELSE NULL
  END AS failure_rate,
  COALESCE(f.failed_invalid, 0) AS failed_invalid,
  COALESCE(f.failed_permission, 0) AS failed_permission,
  COALESCE(f.failed_not_found, 0) AS failed_not_found,
  COALESCE(f.failed_quota, 0) AS failed_quota,
  COALESCE(f.failed_timeout, 0) AS failed_timeout,
  COALESCE(f.failed_unavailable, 0) AS failed_unavailable,
  COALESCE(f.failed_malformed, 0) AS failed_malformed
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id
JOIN (
  SELECT
    run_id,
    config_id,
    MAX(queries) AS queries,
    MAX(empty) AS empty,
    MAX(failed) AS failed,
    MAX(missing) AS missing
  FROM configuration_metrics
  WHERE
    slice = 'all'
  GROUP BY
    run_id,
    config_id
) AS m
  ON m.run_id = r.run_id AND m.config_id = c.config_id
LEFT JOIN (
  SELECT
    run_id,
    config_id,
    COUNT_IF(kind = 'invalid') AS failed_invalid,
    COUNT_IF(kind = 'permission') AS failed_permission,
    COUNT_IF(kind = 'not_found') AS failed_not_found,
    COUNT_IF(kind = 'quota') AS failed_quota,
    COUNT_IF(kind = 'timeout') AS failed_timeout,
    COUNT_IF(kind = 'unavailable') AS failed_unavailable,
    COUNT_IF(kind = 'malformed') AS failed_malformed
  FROM failures
  GROUP BY
    run_id,
    config_id
) AS f
  ON f.run_id = r.run_id AND f.config_id = COALESCE(c.derived_from, c.config_id);

CREATE VIEW differences AS
SELECT
  r.run_id,
  r.experiment,
  d.started_at,
  r.is_latest,
  d.slice,
  d.metric,
  c.name AS configuration,
  b.name AS baseline,
  d.difference,
  d.ci_low,
  d.ci_high,
  d.std_error,
  d.p_value,
  d.p_adjusted,
  d.q_value,
  d.t_p_value,
  d.effect_size,
  d.detectable,
  d.queries,
  d.unpaired,
  d.wins,
  d.ties,
  d.losses,
  c.position,
  c.config_id,
  b.config_id AS baseline_id
FROM run_history AS r
JOIN comparisons AS d
  ON d.run_id = r.run_id
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.config_id = d.config_id
JOIN configurations AS b
  ON b.run_id = r.run_id AND b.config_id = d.baseline;

CREATE VIEW failure_kinds AS
SELECT
  r.run_id,
  r.experiment,
  f.started_at,
  r.is_latest,
  c.name AS configuration,
  f.stage,
  f.kind,
  COUNT(*) AS failures,
  COUNT(DISTINCT f.query_id) AS queries,
  SUM(f.attempts) AS attempts,
  MIN(f.message) AS example,
  c.config_id
FROM run_history AS r
JOIN failures AS f
  ON f.run_id = r.run_id
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.config_id = f.config_id
GROUP BY
  r.run_id,
  r.experiment,
  f.started_at,
  r.is_latest,
  c.name,
  f.stage,
  f.kind,
  c.config_id;

CREATE VIEW leaderboard AS
SELECT
  r.run_id,
  r.experiment,
  m.started_at,
  r.is_latest,
  m.metric,
  RANK() OVER (PARTITION BY r.run_id, m.metric ORDER BY m.mean DESC) AS rank,
  c.name AS configuration,
  m.mean,
  m.ci_low,
  m.ci_high,
  m.std_error,
  m.joint_low,
  m.joint_high,
  m.may_be_best,
  m.queries,
  m.empty,
  m.failed,
  m.missing,
  m.lowest,
  m.highest,
  m.tie_lowest,
  m.tie_highest,
  c.position,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id
JOIN configuration_metrics AS m
  ON m.run_id = r.run_id AND m.config_id = c.config_id
WHERE
  m.slice = 'all';

CREATE VIEW per_query AS
SELECT
  r.run_id,
  r.experiment,
  q.started_at,
  r.is_latest,
  c.name AS configuration,
  q.query_id,
  q.text,
  q.status,
  q.slices,
  item.metric,
  item.value,
  item.tie_lowest,
  item.tie_highest,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id
JOIN query_metrics AS q
  ON q.run_id = r.run_id AND q.config_id = c.config_id
CROSS JOIN UNNEST(q.metrics) AS _t0(item);

CREATE VIEW slice_leaderboard AS
SELECT
  r.run_id,
  r.experiment,
  m.started_at,
  r.is_latest,
  m.slice,
  REPLACE(REGEXP_REPLACE(m.parted, '=[^' || CHR(31) || ']*', '', 'g'), CHR(31), '×') AS attribute,
  REPLACE(
    REGEXP_REPLACE(m.parted, '(^|' || CHR(31) || ')[^=' || CHR(31) || ']*=', '\1', 'g'),
    CHR(31),
    ' × '
  ) AS value,
  m.metric,
  RANK() OVER (PARTITION BY r.run_id, m.slice, m.metric ORDER BY m.mean DESC) AS rank,
  c.name AS configuration,
  m.mean,
  m.ci_low,
  m.ci_high,
  m.std_error,
  m.joint_low,
  m.joint_high,
  m.may_be_best,
  m.queries,
  m.empty,
  m.failed,
  m.missing,
  m.lowest,
  m.highest,
  m.tie_lowest,
  m.tie_highest,
  c.position,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id
JOIN (
  SELECT
    *,
    REGEXP_REPLACE(slice, '×([^×=]*)=', CHR(31) || '\1=', 'g') AS parted
  FROM configuration_metrics
  WHERE
    slice <> 'all'
) AS m
  ON m.run_id = r.run_id AND m.config_id = c.config_id;

CREATE VIEW trend AS
SELECT
  h.experiment,
  h.dataset_fingerprint,
  h.configuration,
  m.metric,
  m.started_at,
  h.run_id,
  h.is_latest,
  m.mean,
  m.ci_low,
  m.ci_high,
  m.std_error,
  m.queries,
  m.empty,
  m.failed,
  m.missing,
  m.lowest,
  m.highest,
  b.mean AS previous_mean,
  m.mean - b.mean AS change,
  h.config_id <> h.previous_config_id AS parameters_changed,
  h.previous_run_id,
  h.config_id
FROM configuration_history AS h
JOIN configuration_metrics AS m
  ON m.run_id = h.run_id AND m.config_id = h.config_id
LEFT JOIN configuration_metrics AS b
  ON b.run_id = h.previous_run_id
  AND b.config_id = h.previous_config_id
  AND b.slice = m.slice
  AND b.metric = m.metric
WHERE
  m.slice = 'all';

CREATE VIEW query_changes AS
SELECT
  h.run_id,
  h.experiment,
  q.started_at,
  h.is_latest,
  h.configuration,
  m.metric,
  q.query_id,
  q.text,
  q.status,
  b.status AS previous_status,
  v.value,
  w.value AS previous_value,
  v.value - w.value AS difference,
  q.slices,
  h.previous_run_id,
  h.previous_started_at,
  h.config_id,
  h.previous_config_id
FROM configuration_history AS h
JOIN configuration_metrics AS m
  ON m.run_id = h.run_id AND m.config_id = h.config_id
JOIN query_metrics AS q
  ON q.run_id = h.run_id AND q.config_id = h.config_id
JOIN query_metrics AS b
  ON b.run_id = h.previous_run_id
  AND b.config_id = h.previous_config_id
  AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = h.run_id
  AND v.config_id = h.config_id
  AND v.query_id = q.query_id
  AND v.metric = m.metric
LEFT JOIN per_query AS w
  ON w.run_id = h.previous_run_id
  AND w.config_id = h.previous_config_id
  AND w.query_id = q.query_id
  AND w.metric = m.metric
WHERE
  m.slice = 'all';

CREATE VIEW side_by_side AS
SELECT
  d.run_id,
  d.experiment,
  q.started_at,
  d.is_latest,
  d.metric,
  d.configuration,
  d.baseline,
  q.query_id,
  q.text,
  q.status,
  b.status AS baseline_status,
  v.value,
  w.value AS baseline_value,
  v.value - w.value AS difference,
  q.slices,
  d.config_id,
  d.baseline_id
FROM differences AS d
JOIN query_metrics AS q
  ON q.run_id = d.run_id AND q.config_id = d.config_id
JOIN query_metrics AS b
  ON b.run_id = d.run_id AND b.config_id = d.baseline_id AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = d.run_id
  AND v.config_id = d.config_id
  AND v.query_id = q.query_id
  AND v.metric = d.metric
LEFT JOIN per_query AS w
  ON w.run_id = d.run_id
  AND w.config_id = d.baseline_id
  AND w.query_id = q.query_id
  AND w.metric = d.metric
WHERE
  d.slice = 'all';

CREATE VIEW regressions AS
SELECT
  run_id,
  experiment,
  started_at,
  is_latest,
  configuration,
  metric,
  mean,
  previous_mean,
  difference,
  std_error,
  CASE WHEN queries < 20 THEN NULL ELSE difference - 1.96 * std_error END AS ci_low,
  CASE WHEN queries < 20 THEN NULL ELSE difference + 1.96 * std_error END AS ci_high,
  CASE
    WHEN better + worse = 0
    THEN 'same'
    WHEN queries < 20
    THEN 'unclear'
    WHEN difference + 1.96 * std_error < 0
    THEN 'worse'
    WHEN difference - 1.96 * std_error > 0
    THEN 'better'
    ELSE 'unclear'
  END AS verdict,
  queries,
  unpaired,
  better,
  worse,
  queries - better - worse AS same,
  config_id <> previous_config_id AS parameters_changed,
  previous_run_id,
  previous_started_at,
  config_id,
  previous_config_id
FROM (
  SELECT
    run_id,
    experiment,
    started_at,
    is_latest,
    configuration,
    metric,
    previous_run_id,
    previous_started_at,
    config_id,
    previous_config_id,
    AVG(CASE WHEN difference IS NULL THEN NULL ELSE value END) AS mean,
    AVG(CASE WHEN difference IS NULL THEN NULL ELSE previous_value END) AS previous_mean,
    AVG(difference) AS difference,
    CASE
      WHEN SQRT(COUNT(difference)) <> 0
      THEN STDDEV_SAMP(difference) / SQRT(COUNT(difference))
      ELSE NULL
    END AS std_error,
    COUNT(difference) AS queries,
    COUNT_IF(difference IS NULL) AS unpaired,
    COUNT_IF(difference > 0) AS better,
    COUNT_IF(difference < 0) AS worse
  FROM query_changes
  GROUP BY
    run_id,
    experiment,
    started_at,
    is_latest,
    configuration,
    metric,
    previous_run_id,
    previous_started_at,
    config_id,
    previous_config_id
) AS changes;
