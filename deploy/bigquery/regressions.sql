-- Which configurations got worse since their previous run over the same dataset, and is that more than chance?
-- Means are over the queries that have a value in both runs; `unpaired` ones have not. The 95% interval is the normal
-- one of paired differences, and is null below 20 queries; `rankbeam compare` has bootstrapped ones, for any two runs.
SELECT
  run_id, experiment, started_at, is_latest, configuration, metric,
  mean, previous_mean, difference, std_error,
  IF(queries < 20, NULL, difference - 1.96 * std_error) AS ci_low,
  IF(queries < 20, NULL, difference + 1.96 * std_error) AS ci_high,
  CASE
    WHEN better + worse = 0 THEN 'same'
    WHEN queries < 20 THEN 'unclear'
    WHEN difference + 1.96 * std_error < 0 THEN 'worse'
    WHEN difference - 1.96 * std_error > 0 THEN 'better'
    ELSE 'unclear'
  END AS verdict,
  queries, unpaired, better, worse, queries - better - worse AS same,
  config_id != previous_config_id AS parameters_changed,
  previous_run_id, previous_started_at, config_id, previous_config_id
FROM (
  SELECT
    run_id, experiment, started_at, is_latest, configuration, metric,
    previous_run_id, previous_started_at, config_id, previous_config_id,
    AVG(IF(difference IS NULL, NULL, value)) AS mean,
    AVG(IF(difference IS NULL, NULL, previous_value)) AS previous_mean,
    AVG(difference) AS difference,
    SAFE_DIVIDE(STDDEV_SAMP(difference), SQRT(COUNT(difference))) AS std_error,
    COUNT(difference) AS queries,
    COUNTIF(difference IS NULL) AS unpaired,
    COUNTIF(difference > 0) AS better,
    COUNTIF(difference < 0) AS worse
  FROM query_changes
  GROUP BY
    run_id, experiment, started_at, is_latest, configuration, metric,
    previous_run_id, previous_started_at, config_id, previous_config_id
) AS changes
