-- Which configuration of a run that ended in the last day is worse than in its previous run, by more than chance? One
-- configuration and metric at a time: with many of them, expect some by chance, and watch `monitor` instead.
SELECT
  CONCAT(
    experiment, ': ', configuration, ' is worse by ', metric, ': ', CAST(ROUND(mean, 4) AS STRING), ' after ',
    CAST(ROUND(previous_mean, 4) AS STRING), ' over the same ', CAST(queries AS STRING), ' queries'
  ) AS message
FROM regressions
WHERE verdict = 'worse' AND is_latest
  AND run_id IN (SELECT run_id FROM runs WHERE finished_at > TIMESTAMP_SUB(@run_time, INTERVAL 1 DAY))
