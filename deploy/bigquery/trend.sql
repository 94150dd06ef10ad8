-- How did each configuration of an experiment do over time? One line a configuration, metric and dataset fingerprint:
-- runs over another dataset start another line. The previous point of a line is the last earlier run with a value, of
-- the configuration of this name or, where there is none, of the same parameters under another; `change` is from it.
SELECT
  p.experiment, p.dataset_fingerprint, p.configuration, p.dialect, p.metric, p.started_at, p.run_id, p.is_latest,
  p.mean, p.ci_low, p.ci_high, p.std_error, p.queries, p.empty, p.failed, p.undefined, p.missing, p.lowest,
  p.highest, p.sign,
  b.mean AS previous_mean, p.mean - b.mean AS change, p.config_id != b.config_id AS parameters_changed,
  b.run_id AS previous_run_id, b.started_at AS previous_started_at, p.config_id, b.config_id AS previous_config_id
FROM (
  SELECT
    r.experiment, r.dataset_fingerprint, r.is_latest, c.name AS configuration, c.dialect,
    m.run_id, m.started_at, m.config_id, m.slice, m.metric,
    m.mean, m.ci_low, m.ci_high, m.std_error, m.queries, m.empty, m.failed, COALESCE(m.undefined, 0) AS undefined,
    m.missing, m.lowest, m.highest,
    IF(COALESCE(m.lower_is_better, REGEXP_CONTAINS(m.metric, r'^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\b')), -1, 1) AS sign,
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
  JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
  JOIN configuration_metrics AS m ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id
  WHERE m.slice = 'all'
  WINDOW
    of_name AS (
      PARTITION BY r.experiment, r.dataset_fingerprint, c.name, m.metric ORDER BY r.started_at, r.run_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ),
    of_parameters AS (
      PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric ORDER BY r.started_at, r.run_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
) AS p
LEFT JOIN configuration_metrics AS b
  ON b.run_id = p.previous_run_id AND b.started_at = p.previous_started_at AND b.config_id = p.previous_config_id
  AND b.slice = p.slice AND b.metric = p.metric
