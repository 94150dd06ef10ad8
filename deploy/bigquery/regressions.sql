-- Which configurations got worse since their previous run with values, and is that more than chance? `trend` says which
-- run that is. Means are over the queries that have a value in both runs; `unpaired` ones have not. Without any such
-- query the verdict is `nothing to compare`: no earlier run has a value, or every call of this one failed. The 95%
-- interval is the normal one of paired differences, and is null below 20 queries; `rankbeam compare` has bootstrapped
-- ones, for any two runs.
SELECT
  run_id, experiment, started_at, is_latest, configuration, dialect, metric,
  mean, previous_mean, difference, std_error,
  IF(queries < 20, NULL, difference - 1.96 * std_error) AS ci_low,
  IF(queries < 20, NULL, difference + 1.96 * std_error) AS ci_high,
  CASE
    WHEN queries = 0 THEN 'nothing to compare'
    WHEN better + worse = 0 THEN 'same'
    WHEN queries < 20 THEN 'unclear'
    WHEN sign * difference + 1.96 * std_error < 0 THEN 'worse'
    WHEN sign * difference - 1.96 * std_error > 0 THEN 'better'
    ELSE 'unclear'
  END AS verdict,
  queries, unpaired, better, worse, queries - better - worse AS same,
  parameters_changed, previous_run_id, previous_started_at, config_id, previous_config_id
FROM (
  SELECT
    t.run_id, t.experiment, t.started_at, t.is_latest, t.configuration, t.dialect, t.metric, t.parameters_changed,
    t.previous_run_id, t.previous_started_at, t.config_id, t.previous_config_id, t.sign,
    AVG(IF(q.difference IS NULL, NULL, q.value)) AS mean,
    AVG(IF(q.difference IS NULL, NULL, q.previous_value)) AS previous_mean,
    AVG(q.difference) AS difference,
    SAFE_DIVIDE(STDDEV_SAMP(q.difference), SQRT(COUNT(q.difference))) AS std_error,
    COUNT(q.difference) AS queries,
    COUNT(q.query_id) - COUNT(q.difference) AS unpaired,
    COUNT(IF(t.sign * q.difference > 0, 1, NULL)) AS better,
    COUNT(IF(t.sign * q.difference < 0, 1, NULL)) AS worse
  FROM trend AS t
  LEFT JOIN query_changes AS q
    ON q.run_id = t.run_id AND q.started_at = t.started_at AND q.config_id = t.config_id AND q.metric = t.metric
  GROUP BY
    t.run_id, t.experiment, t.started_at, t.is_latest, t.configuration, t.dialect, t.metric, t.parameters_changed,
    t.previous_run_id, t.previous_started_at, t.config_id, t.previous_config_id, t.sign
) AS changes
