-- How many queries does each configuration answer, and why not the others? `queries` were scored, `empty` of them
-- without any result; `failed` were not scored; `missing` are left out by the configuration's dialect. The columns
-- `failed_…` count its calls that failed, by kind; a derived configuration has those of the one it was cut from.
SELECT
  r.run_id, r.experiment, r.started_at, r.is_latest, c.name AS configuration, c.retriever, c.position, c.config_id,
  m.queries, m.empty, m.failed, m.missing,
  SAFE_DIVIDE(m.empty, m.queries) AS empty_rate,
  SAFE_DIVIDE(m.failed, m.queries + m.failed) AS failure_rate,
  COALESCE(f.failed_invalid, 0) AS failed_invalid,
  COALESCE(f.failed_permission, 0) AS failed_permission,
  COALESCE(f.failed_not_found, 0) AS failed_not_found,
  COALESCE(f.failed_quota, 0) AS failed_quota,
  COALESCE(f.failed_timeout, 0) AS failed_timeout,
  COALESCE(f.failed_unavailable, 0) AS failed_unavailable,
  COALESCE(f.failed_malformed, 0) AS failed_malformed
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id
JOIN (
  SELECT
    run_id, config_id,
    MAX(queries) AS queries, MAX(empty) AS empty, MAX(failed) AS failed, MAX(missing) AS missing
  FROM configuration_metrics
  WHERE slice = 'all'
  GROUP BY run_id, config_id
) AS m ON m.run_id = r.run_id AND m.config_id = c.config_id
LEFT JOIN (
  SELECT
    run_id, config_id,
    COUNTIF(kind = 'invalid') AS failed_invalid,
    COUNTIF(kind = 'permission') AS failed_permission,
    COUNTIF(kind = 'not_found') AS failed_not_found,
    COUNTIF(kind = 'quota') AS failed_quota,
    COUNTIF(kind = 'timeout') AS failed_timeout,
    COUNTIF(kind = 'unavailable') AS failed_unavailable,
    COUNTIF(kind = 'malformed') AS failed_malformed
  FROM failures
  GROUP BY run_id, config_id
) AS f ON f.run_id = r.run_id AND f.config_id = COALESCE(c.derived_from, c.config_id)
