-- What did each configuration call to retrieve and to answer, and what did that cost? A call that several configurations
-- share counts for each of them; the cost is null if a price is unknown. Runs of earlier versions have no calls here.
-- `queries` are those that it was called for, with a value or without. `ledger_hits` are the run's: answers that an earlier
-- run had paid for. `ledger_calls` are the attempts that the configuration's part of them once took, and `ledger_cost` is
-- what these would have cost at this run's prices.
SELECT
  r.run_id, r.experiment, r.started_at, r.is_latest, c.position, c.name AS configuration,
  COALESCE(u.calls, 0) AS calls, COALESCE(u.shared_calls, 0) AS shared_calls,
  COALESCE(u.input_tokens, 0) AS input_tokens, COALESCE(u.output_tokens, 0) AS output_tokens,
  CASE WHEN u.config_id IS NULL THEN 0.0 WHEN u.without_price > 0 THEN NULL ELSE u.cost END AS cost, q.queries, c.config_id,
  r.ledger_hits, COALESCE(h.calls, 0) AS ledger_calls,
  CASE WHEN h.without_price > 0 THEN NULL ELSE COALESCE(h.cost, 0.0) END AS ledger_cost
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
LEFT JOIN (
  SELECT
    s.run_id, s.started_at, used.config_id, SUM(used.calls) AS calls, SUM(used.shared_calls) AS shared_calls,
    SUM(used.input_tokens) AS input_tokens, SUM(used.output_tokens) AS output_tokens,
    SUM(CASE WHEN used.cost IS NULL THEN 1 ELSE 0 END) AS without_price,
    SUM(COALESCE(used.cost, 0.0)) AS cost
  FROM usage AS s
  CROSS JOIN UNNEST(s.configurations) AS used
  GROUP BY s.run_id, s.started_at, used.config_id
) AS u ON u.run_id = c.run_id AND u.started_at = c.started_at AND u.config_id = c.config_id
LEFT JOIN (
  SELECT
    s.run_id, s.started_at, known.config_id, SUM(COALESCE(known.calls, known.ledger_hits)) AS calls,
    SUM(CASE WHEN known.cost IS NULL THEN 1 ELSE 0 END) AS without_price, SUM(known.cost) AS cost
  FROM usage AS s
  CROSS JOIN UNNEST(s.from_ledger) AS known
  GROUP BY s.run_id, s.started_at, known.config_id
) AS h ON h.run_id = c.run_id AND h.started_at = c.started_at AND h.config_id = c.config_id
LEFT JOIN (
  SELECT
    m.run_id, m.started_at, m.config_id,
    MAX(m.queries + m.failed + COALESCE(m.undefined, 0) + m.missing) AS queries
  FROM configuration_metrics AS m
  WHERE m.slice = 'all'
  GROUP BY m.run_id, m.started_at, m.config_id
) AS q ON q.run_id = c.run_id AND q.started_at = c.started_at AND q.config_id = c.config_id
