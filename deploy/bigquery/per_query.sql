-- What are the values of every query, by configuration and metric? Queries whose call failed have no values of rankings
-- here. Judged metrics have a status of their own, and a null value with a `reason` where they failed or do not exist.
SELECT
  r.run_id, r.experiment, q.started_at, r.is_latest, c.name AS configuration, q.query_id, q.text,
  COALESCE(item.status, q.status) AS status, item.reason, q.slices,
  item.metric, item.value, item.tie_lowest, item.tie_highest, c.config_id
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN query_metrics AS q ON q.run_id = r.run_id AND q.started_at = r.started_at AND q.config_id = c.config_id
CROSS JOIN UNNEST(q.metrics) AS item
