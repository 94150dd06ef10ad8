-- Has quality moved since the baseline run? A line for each configuration and metric of a run that `rankbeam monitor`
-- compared: `alarm` is true where a whole interval is beyond the tolerance.
SELECT
  r.run_id, r.experiment, r.started_at, r.is_latest, c.name AS configuration, m.metric, m.mode, m.state, m.alarm,
  m.change, m.low, m.high, m.lowest_high, m.highest_low, m.nights, m.since, m.tolerance, m.baseline_run,
  m.baseline_mean, m.queries, m.skipped, m.quarter, m.config_id
FROM run_history AS r
JOIN monitor AS m ON m.run_id = r.run_id AND m.started_at = r.started_at
JOIN configurations AS c ON c.run_id = m.run_id AND c.started_at = m.started_at AND c.config_id = m.config_id
