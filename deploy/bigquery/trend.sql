-- How did each configuration of an experiment do over time? One line a configuration, metric and dataset fingerprint:
-- runs over another dataset start another line. The previous point of a line is the last earlier run with a value, of
-- the configuration of this name or, where there is none, of the same parameters under another; `change` is from it.
SELECT
  experiment, dataset_fingerprint, configuration, dialect, metric, started_at, run_id, is_latest,
  mean, ci_low, ci_high, std_error, queries, empty, failed, missing, lowest, highest,
  previous.mean AS previous_mean, mean - previous.mean AS change,
  config_id != previous.config_id AS parameters_changed,
  previous.run_id AS previous_run_id, previous.started_at AS previous_started_at,
  config_id, previous.config_id AS previous_config_id
FROM (
  SELECT
    r.experiment, r.dataset_fingerprint, r.is_latest, c.name AS configuration, c.dialect, m.*,
    COALESCE(
      LAST_VALUE(m.point IGNORE NULLS) OVER of_name, LAST_VALUE(m.point IGNORE NULLS) OVER of_parameters
    ) AS previous
  FROM run_history AS r
  JOIN configurations AS c ON c.run_id = r.run_id
  JOIN (
    SELECT
      *,
      IF(
        mean IS NULL, NULL,
        STRUCT(run_id AS run_id, started_at AS started_at, config_id AS config_id, mean AS mean)
      ) AS point
    FROM configuration_metrics
    WHERE slice = 'all'
  ) AS m ON m.run_id = r.run_id AND m.config_id = c.config_id
  WINDOW
    of_name AS (
      PARTITION BY r.experiment, r.dataset_fingerprint, c.name, m.metric ORDER BY r.started_at, r.run_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ),
    of_parameters AS (
      PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric ORDER BY r.started_at, r.run_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
) AS points
