-- What failed, at which stage and why, and what did the service say? `example` is one of the messages.
SELECT
  r.run_id, r.experiment, f.started_at, r.is_latest, c.name AS configuration, f.stage, f.kind,
  COUNT(*) AS failures, COUNT(DISTINCT f.query_id) AS queries, SUM(f.attempts) AS attempts,
  MIN(f.message) AS example, c.config_id
FROM run_history AS r
JOIN failures AS f ON f.run_id = r.run_id
JOIN configurations AS c ON c.run_id = r.run_id AND c.config_id = f.config_id
GROUP BY r.run_id, r.experiment, f.started_at, r.is_latest, c.name, f.stage, f.kind, c.config_id
