-- What does each stage add, compared with the configuration that lacks it alone, is that more than chance, and what does it
-- cost? Further calls are those of a query, and the further cost is that of 1,000 queries, whatever the metric and slice;
-- both include answers in the ledger.
SELECT
  d.run_id, d.experiment, d.started_at, d.is_latest, d.stage, d.slice, d.metric,
  d.configuration, d.baseline AS without_stage, d.difference AS gain, d.ci_low, d.ci_high, d.p_value, d.p_adjusted,
  d.queries, d.wins, d.ties, d.losses,
  SAFE_DIVIDE(one.calls + one.ledger_calls, one.queries) - SAFE_DIVIDE(other.calls + other.ledger_calls, other.queries)
    AS further_calls,
  SAFE_DIVIDE((one.cost + one.ledger_cost) * 1000, one.queries)
    - SAFE_DIVIDE((other.cost + other.ledger_cost) * 1000, other.queries) AS further_cost,
  d.config_id, d.baseline_id
FROM differences AS d
JOIN configuration_costs AS one ON one.run_id = d.run_id AND one.started_at = d.started_at AND one.config_id = d.config_id
JOIN configuration_costs AS other ON other.run_id = d.run_id AND other.started_at = d.started_at AND other.config_id = d.baseline_id
WHERE d.stage IS NOT NULL
