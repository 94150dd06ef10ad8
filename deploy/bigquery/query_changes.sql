-- Which queries got better or worse since the previous run with a value of the metric? `trend` says which one that is.
-- A value is null where there is none, because a call failed or it does not exist: `status` and
-- `previous_status` say so.
SELECT
  t.run_id, t.experiment, q.started_at, t.is_latest, t.configuration, t.metric, q.query_id, q.text,
  COALESCE(v.status, q.status) AS status, COALESCE(w.status, b.status) AS previous_status,
  v.value, w.value AS previous_value, v.value - w.value AS difference, q.slices,
  t.previous_run_id, t.previous_started_at, t.config_id, t.previous_config_id
FROM trend AS t
JOIN query_metrics AS q ON q.run_id = t.run_id AND q.started_at = t.started_at AND q.config_id = t.config_id
JOIN query_metrics AS b
  ON b.run_id = t.previous_run_id AND b.started_at = t.previous_started_at AND b.config_id = t.previous_config_id
  AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = t.run_id AND v.started_at = t.started_at AND v.config_id = t.config_id AND v.query_id = q.query_id
  AND v.metric = t.metric
LEFT JOIN per_query AS w
  ON w.run_id = t.previous_run_id AND w.started_at = t.previous_started_at AND w.config_id = t.previous_config_id
  AND w.query_id = q.query_id AND w.metric = t.metric
