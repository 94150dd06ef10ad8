-- How many queries does each configuration answer, and why not the others? `queries` were scored, `empty` of them
-- without any result; `failed` were not scored; `undefined` have a value that does not exist; `missing` are left out by
-- the configuration's dialect; `not_asked` came after a race had dropped the configuration, at `dropped_at` queries. Metrics that share a status are a `panel`: the counts are those of the one with the
-- highest `failure_rate`, of rankings where no judged metric has a higher one. The columns
-- `failed_…` count the failed calls and judged values, by kind: its own and, of a fusion or a reranked configuration,
-- those for the rankings that it is made of. A configuration that is cut from another (`cut_from`), where its calls are
-- counted, has only judged values; without any that failed, they are null.
SELECT
  r.run_id, r.experiment, r.started_at, r.is_latest, c.name AS configuration, c.retriever, c.dialect, c.position,
  c.config_id, o.name AS cut_from, m.panel, m.queries, m.empty, m.failed, m.undefined, m.missing, m.not_asked,
  c.dropped_at,
  SAFE_DIVIDE(m.empty, m.queries) AS empty_rate,
  m.failure_rate,
  COALESCE(f.failed_invalid, c.none_failed) AS failed_invalid,
  COALESCE(f.failed_permission, c.none_failed) AS failed_permission,
  COALESCE(f.failed_not_found, c.none_failed) AS failed_not_found,
  COALESCE(f.failed_quota, c.none_failed) AS failed_quota,
  COALESCE(f.failed_timeout, c.none_failed) AS failed_timeout,
  COALESCE(f.failed_unavailable, c.none_failed) AS failed_unavailable,
  COALESCE(f.failed_malformed, c.none_failed) AS failed_malformed,
  COALESCE(f.failed_blocked, c.none_failed) AS failed_blocked,
  COALESCE(f.failed_truncated, c.none_failed) AS failed_truncated,
  COALESCE(f.failed_over_budget, c.none_failed) AS failed_over_budget
FROM run_history AS r
JOIN (
  SELECT *, IF(derived_from IS NULL, 0, NULL) AS none_failed FROM configurations
) AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY run_id, started_at, config_id ORDER BY COALESCE(failure_rate, -1) DESC, panel != 'retrieval', panel
    ) AS place
  FROM (
    SELECT
      run_id, started_at, config_id, panel, queries, empty, failed, undefined, missing, not_asked,
      SAFE_DIVIDE(failed, queries + undefined + failed) AS failure_rate
    FROM (
      SELECT
        run_id, started_at, config_id, COALESCE(panel, 'retrieval') AS panel, MAX(queries) AS queries,
        MAX(empty) AS empty, MAX(failed) AS failed, MAX(COALESCE(undefined, 0)) AS undefined, MAX(missing) AS missing,
        MAX(COALESCE(not_asked, 0)) AS not_asked
      FROM configuration_metrics
      WHERE slice = 'all'
      GROUP BY run_id, started_at, config_id, COALESCE(panel, 'retrieval')
    ) AS counts
  ) AS rates
) AS m ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id AND m.place = 1
LEFT JOIN configurations AS o ON o.run_id = r.run_id AND o.started_at = r.started_at AND o.config_id = c.derived_from
LEFT JOIN (
  SELECT
    run_id, started_at, config_id,
    SUM(IF(kind = 'invalid', failures, 0)) AS failed_invalid,
    SUM(IF(kind = 'permission', failures, 0)) AS failed_permission,
    SUM(IF(kind = 'not_found', failures, 0)) AS failed_not_found,
    SUM(IF(kind = 'quota', failures, 0)) AS failed_quota,
    SUM(IF(kind = 'timeout', failures, 0)) AS failed_timeout,
    SUM(IF(kind = 'unavailable', failures, 0)) AS failed_unavailable,
    SUM(IF(kind = 'malformed', failures, 0)) AS failed_malformed,
    SUM(IF(kind = 'blocked', failures, 0)) AS failed_blocked,
    SUM(IF(kind = 'truncated', failures, 0)) AS failed_truncated,
    SUM(IF(kind = 'over_budget', failures, 0)) AS failed_over_budget
  FROM failure_kinds
  GROUP BY run_id, started_at, config_id
) AS f ON f.run_id = r.run_id AND f.started_at = r.started_at AND f.config_id = c.config_id
