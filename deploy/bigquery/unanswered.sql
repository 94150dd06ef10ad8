-- Why has a query no answer under a configuration? One row a failed call that the answer needed: the configuration's
-- own, one of the configuration that it is cut from, or one of a part that it is fused of; `caller` made the call.
SELECT
  r.run_id, r.experiment, f.started_at, r.is_latest, c.name AS configuration, o.name AS caller,
  f.query_id, f.stage, f.kind, f.attempts, f.message, c.config_id, o.config_id AS caller_id, c.derived_from
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
CROSS JOIN UNNEST(
  IF(COALESCE(ARRAY_LENGTH(c.parts), 0) > 0, c.parts, [COALESCE(c.derived_from, c.config_id)])
) AS asked
JOIN configurations AS o ON o.run_id = r.run_id AND o.started_at = r.started_at AND o.config_id = asked
JOIN failures AS f ON f.run_id = r.run_id AND f.started_at = r.started_at AND f.config_id = o.config_id
