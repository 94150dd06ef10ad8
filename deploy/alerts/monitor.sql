-- Which metric of a run that ended in the last day is beyond the tolerance around its baseline, as `rankbeam monitor`
-- found?
SELECT
  CONCAT(
    experiment, ': ', metric, ' of ', configuration, ' ', state, ' since the baseline ', baseline_run, ': a change of ',
    CAST(ROUND(change, 4) AS STRING)
  ) AS message
FROM monitoring
WHERE alarm AND is_latest
  AND run_id IN (SELECT run_id FROM runs WHERE finished_at > TIMESTAMP_SUB(@run_time, INTERVAL 1 DAY))
