-- What was called in which hour, and what did the ledger save? In UTC, by the hour in which runs started; days and
-- months are sums of these, and single runs are in `run_history`. For costs, multiply by the price of a call.
SELECT
  TIMESTAMP_SECONDS(hours * 3600) AS started_hour,
  CAST(DATE_FROM_UNIX_DATE(DIV(hours, 24)) AS DATE) AS started_day,
  experiment,
  COUNT(*) AS runs, SUM(calls) AS calls, SUM(ledger_hits) AS ledger_hits, SUM(failures) AS failures,
  SUM(duration_s) AS duration_s,
  SAFE_DIVIDE(SUM(ledger_hits), SUM(calls) + SUM(ledger_hits)) AS ledger_share
FROM (
  SELECT experiment, calls, ledger_hits, failures, duration_s, DIV(UNIX_MICROS(started_at), 3600000000) AS hours
  FROM run_history
) AS r
GROUP BY hours, experiment
