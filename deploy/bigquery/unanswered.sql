-- Why has a query no value under a configuration? One row a failed call, or judged value, of the configuration's own, and
-- one a failed call for the rankings that it is cut from, or made of; `caller` is the configuration that made the call.
SELECT
  r.run_id, r.experiment, f.started_at, r.is_latest, c.name AS configuration, o.name AS caller,
  f.query_id, f.stage, f.kind, f.attempts, f.message, f.metric, c.config_id, o.config_id AS caller_id, c.derived_from
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN failures AS f ON f.run_id = r.run_id AND f.started_at = r.started_at
JOIN configurations AS o ON o.run_id = r.run_id AND o.started_at = r.started_at AND o.config_id = f.config_id
WHERE f.config_id = c.config_id
  OR f.stage != 'judge' AND (f.config_id = c.derived_from OR f.config_id IN UNNEST(c.parts))
