-- Which queries got better or worse since the previous run of the same configuration over the same dataset?
-- A value is null where there is none, because the call failed: `status` and `previous_status` say so.
SELECT
  h.run_id, h.experiment, q.started_at, h.is_latest, h.configuration, m.metric, q.query_id, q.text, q.status,
  b.status AS previous_status, v.value, w.value AS previous_value, v.value - w.value AS difference, q.slices,
  h.previous_run_id, h.previous_started_at, h.config_id, h.previous_config_id
FROM configuration_history AS h
JOIN configuration_metrics AS m ON m.run_id = h.run_id AND m.config_id = h.config_id
JOIN query_metrics AS q ON q.run_id = h.run_id AND q.config_id = h.config_id
JOIN query_metrics AS b
  ON b.run_id = h.previous_run_id AND b.config_id = h.previous_config_id AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = h.run_id AND v.config_id = h.config_id AND v.query_id = q.query_id AND v.metric = m.metric
LEFT JOIN per_query AS w
  ON w.run_id = h.previous_run_id AND w.config_id = h.previous_config_id AND w.query_id = q.query_id
  AND w.metric = m.metric
WHERE m.slice = 'all'
