-- What does quality cost? `is_front` means that no other configuration of the run is at least as cheap for 1,000 queries
-- and as good, and one of both more so. Configurations without a mean or with an unknown price are left out, and runs
-- without calls. Costs include those of answers in the ledger, at this run's prices. In runs of versions that did not
-- store them, costs are too low if `ledger_hits` is not 0.
SELECT
  l.run_id, l.experiment, l.started_at, l.is_latest, l.metric, l.dialect, l.configuration,
  k.cost_of_1000_queries, k.calls, l.mean, l.ci_low, l.ci_high,
  l.mean = l.sign * MAX(l.sign * l.mean) OVER cheaper AND k.cost_of_1000_queries = MIN(k.cost_of_1000_queries) OVER alike AS is_front,
  l.queries, l.position, l.config_id, k.ledger_hits
FROM leaderboard AS l
JOIN (
  SELECT
    run_id, started_at, config_id, calls, ledger_hits,
    SAFE_DIVIDE((cost + ledger_cost) * 1000, queries) AS cost_of_1000_queries
  FROM configuration_costs
) AS k ON k.run_id = l.run_id AND k.started_at = l.started_at AND k.config_id = l.config_id
JOIN (SELECT DISTINCT run_id, started_at FROM usage) AS called
  ON called.run_id = l.run_id AND called.started_at = l.started_at
WHERE l.mean IS NOT NULL AND k.cost_of_1000_queries IS NOT NULL
WINDOW
  cheaper AS (PARTITION BY l.run_id, l.dialect, l.metric ORDER BY k.cost_of_1000_queries),
  alike AS (
    PARTITION BY l.run_id, l.dialect, l.metric ORDER BY l.mean RANGE BETWEEN CURRENT ROW AND CURRENT ROW)
