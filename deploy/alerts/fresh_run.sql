-- Which experiment has no run with any value that began within the last @hours hours? Only runs of the last 90 days are
-- looked at. A run of which every call failed has no value, and is no fresh one.
SELECT
  CONCAT(
    'no run of ', wanted, ' with any value in ', CAST(@hours AS STRING), ' hours; ',
    COALESCE(CONCAT('the last one began on ', CAST(began AS STRING)), 'there is none in 90 days')
  ) AS message
FROM UNNEST(@experiments) AS wanted
LEFT JOIN (
  SELECT experiment, MAX(started_at) AS began FROM run_choices WHERE has_values GROUP BY experiment
) AS r ON r.experiment = wanted
WHERE began IS NULL OR began < TIMESTAMP_SUB(@run_time, INTERVAL @hours HOUR)
