-- How did each configuration of an experiment do over time? One line a configuration, metric and dataset fingerprint:
-- runs over another dataset start another line. `change` is from the previous point of the line.
SELECT
  h.experiment, h.dataset_fingerprint, h.configuration, m.metric, m.started_at, h.run_id, h.is_latest,
  m.mean, m.ci_low, m.ci_high, m.std_error, m.queries, m.empty, m.failed, m.missing, m.lowest, m.highest,
  b.mean AS previous_mean, m.mean - b.mean AS change,
  h.config_id != h.previous_config_id AS parameters_changed, h.previous_run_id, h.config_id
FROM configuration_history AS h
JOIN configuration_metrics AS m ON m.run_id = h.run_id AND m.config_id = h.config_id
LEFT JOIN configuration_metrics AS b
  ON b.run_id = h.previous_run_id AND b.config_id = h.previous_config_id
  AND b.slice = m.slice AND b.metric = m.metric
WHERE m.slice = 'all'
