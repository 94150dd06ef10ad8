-- Which configuration is best for a group of queries, such as one language? `attribute` and `value` say which group:
-- the slice `intent=how_to×level=easy` has the attribute `intent×level` and the value `how_to × easy`. `rank` is among
-- the configurations of one dialect, as in `leaderboard`.
SELECT
  r.run_id, r.experiment, m.started_at, r.is_latest, m.slice,
  REPLACE(REGEXP_REPLACE(m.parted, CONCAT('=[^', CHR(31), ']*'), ''), CHR(31), '×') AS attribute,
  REPLACE(
    REGEXP_REPLACE(m.parted, CONCAT('(^|', CHR(31), ')[^=', CHR(31), ']*='), r'\1'), CHR(31), ' × '
  ) AS value,
  m.metric, c.dialect,
  RANK() OVER (
    PARTITION BY m.started_at, r.run_id, c.dialect, m.slice, m.metric ORDER BY m.sign * m.mean DESC NULLS LAST
  ) AS rank,
  c.name AS configuration, m.mean, m.ci_low, m.ci_high, m.std_error, m.joint_low, m.joint_high, m.may_be_best,
  COALESCE(m.panel, 'retrieval') AS panel,
  m.queries, m.empty, m.failed, COALESCE(m.undefined, 0) AS undefined, m.missing,
  m.lowest, m.highest, m.tie_lowest, m.tie_highest, m.equal_to,
  c.position, c.config_id, m.sign
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  -- A value may hold × itself: only one that an attribute and = follow parts two attributes.
  SELECT
    *, REGEXP_REPLACE(slice, '×([^×=]*)=', CONCAT(CHR(31), r'\1=')) AS parted,
    IF(COALESCE(lower_is_better, REGEXP_CONTAINS(metric, r'^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\b')), -1, 1) AS sign
  FROM configuration_metrics
  WHERE slice != 'all'
) AS m ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id
