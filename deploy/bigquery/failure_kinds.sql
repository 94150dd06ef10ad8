-- What failed, at which stage and why, and what did the service say? `example` is one of the messages. A fusion has the
-- failures of its parts, as `caller` says: where the two differ, the calls are counted for the caller, too. A
-- configuration that is cut from another has none of its own.
SELECT
  run_id, experiment, started_at, is_latest, configuration, caller, stage, kind,
  COUNT(*) AS failures, COUNT(DISTINCT query_id) AS queries, SUM(attempts) AS attempts,
  MIN(message) AS example, config_id, caller_id
FROM unanswered
WHERE derived_from IS NULL
GROUP BY run_id, experiment, started_at, is_latest, configuration, caller, stage, kind, config_id, caller_id
