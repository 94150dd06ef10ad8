-- Which run had the same configuration before? By name, within one experiment over one dataset (its fingerprint).
-- Where `config_id` differs from `previous_config_id`, the parameters were changed under the same name.
SELECT
  r.run_id, r.experiment, r.started_at, r.is_latest, r.dataset_fingerprint,
  c.config_id, c.name AS configuration, c.position, c.retriever, c.dialect, c.parameters, c.derived_from,
  LAG(r.run_id) OVER earlier AS previous_run_id,
  LAG(r.started_at) OVER earlier AS previous_started_at,
  LAG(c.config_id) OVER earlier AS previous_config_id
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
WINDOW earlier AS (PARTITION BY r.experiment, r.dataset_fingerprint, c.name ORDER BY r.started_at, r.run_id)
