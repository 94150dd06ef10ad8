-- Which run should be shown: the latest of its experiment or, after an outage, the last that has any value?
SELECT
  r.run_id, r.experiment, r.started_at, r.is_latest,
  m.run_id IS NOT NULL AS has_values,
  m.run_id IS NOT NULL AND ROW_NUMBER() OVER (
    PARTITION BY r.experiment, m.run_id IS NOT NULL ORDER BY r.started_at DESC, r.run_id DESC
  ) = 1 AS is_last_good
FROM run_history AS r
LEFT JOIN (
  SELECT DISTINCT run_id, started_at FROM configuration_metrics WHERE slice = 'all' AND mean IS NOT NULL
) AS m ON m.run_id = r.run_id AND m.started_at = r.started_at
