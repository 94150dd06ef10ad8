-- For which queries do two configurations differ? A row for every query, metric and pair that the run compares.
-- A value is null where there is none, because a call failed or it does not exist: `status` and
-- `baseline_status` say so.
SELECT
  d.run_id, d.experiment, q.started_at, d.is_latest, d.metric, d.configuration, d.baseline,
  q.query_id, q.text, COALESCE(v.status, q.status) AS status, COALESCE(w.status, b.status) AS baseline_status,
  v.value, w.value AS baseline_value,
  v.value - w.value AS difference, q.slices, d.config_id, d.baseline_id
FROM differences AS d
JOIN query_metrics AS q ON q.run_id = d.run_id AND q.started_at = d.started_at AND q.config_id = d.config_id
JOIN query_metrics AS b
  ON b.run_id = d.run_id AND b.started_at = d.started_at AND b.config_id = d.baseline_id AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = d.run_id AND v.started_at = d.started_at AND v.config_id = d.config_id AND v.query_id = q.query_id
  AND v.metric = d.metric
LEFT JOIN per_query AS w
  ON w.run_id = d.run_id AND w.started_at = d.started_at AND w.config_id = d.baseline_id AND w.query_id = q.query_id
  AND w.metric = d.metric
WHERE d.slice = 'all'
