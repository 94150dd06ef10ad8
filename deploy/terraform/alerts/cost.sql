-- Made from deploy/alerts by `make deploy-files`; do not edit. Terraform fills in the settings.
WITH runs AS (
SELECT * FROM `${project}.${dataset}.runs`
),
usage AS (
SELECT * FROM `${project}.${dataset}.usage` WHERE started_at >= TIMESTAMP_SUB(@run_time, INTERVAL 90 DAY)
)
-- Which experiment's runs that ended in the last day cost more than ${most_cost} together, at the prices in the experiment?
SELECT
  CONCAT(
    'the runs of ', experiment, ' in the last day cost ', CAST(ROUND(SUM(cost), 2) AS STRING), ', and the limit is ',
    CAST(${most_cost} AS STRING)
  ) AS message
FROM usage
WHERE run_id IN (SELECT run_id FROM runs WHERE finished_at > TIMESTAMP_SUB(@run_time, INTERVAL 1 DAY))
GROUP BY experiment
HAVING SUM(cost) > ${most_cost}
