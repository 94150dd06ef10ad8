-- What does each stage add, compared with the configuration that lacks it alone, and is that more than chance?
SELECT
  d.run_id, d.experiment, d.started_at, d.is_latest, d.stage, d.slice, d.metric,
  d.configuration, d.baseline AS without_stage, d.difference AS gain, d.ci_low, d.ci_high, d.p_value, d.p_adjusted,
  d.queries, d.wins, d.ties, d.losses, d.config_id, d.baseline_id
FROM differences AS d
WHERE d.stage IS NOT NULL
