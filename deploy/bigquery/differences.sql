-- How far is each configuration from its baseline, over all queries and in every slice, and is that more than chance?
SELECT
  r.run_id, r.experiment, d.started_at, r.is_latest, d.slice, d.metric,
  c.name AS configuration, c.dialect, b.name AS baseline, d.difference, d.ci_low, d.ci_high, d.std_error,
  d.p_value, d.p_method, d.p_adjusted, d.q_value, d.t_p_value, d.effect_size, d.detectable,
  d.queries, d.unpaired, d.wins, d.ties, d.losses, d.clusters, d.stage, d.lower_is_better,
  c.position, c.config_id, b.config_id AS baseline_id
FROM run_history AS r
JOIN comparisons AS d ON d.run_id = r.run_id AND d.started_at = r.started_at
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at AND c.config_id = d.config_id
JOIN configurations AS b ON b.run_id = r.run_id AND b.started_at = r.started_at AND b.config_id = d.baseline
