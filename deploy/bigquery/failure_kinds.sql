-- What failed, at which stage and why, and what did the service say? `example` is one of the messages. A fusion and a
-- reranked configuration have the failed calls for the rankings that they are made of: where `caller` is another
-- configuration, the calls are counted for that one, too. A configuration that is cut from another has only its own.
SELECT
  run_id, experiment, started_at, is_latest, configuration, caller, stage, kind,
  COUNT(*) AS failures, COUNT(DISTINCT query_id) AS queries, SUM(attempts) AS attempts,
  MIN(message) AS example, config_id, caller_id
FROM unanswered
WHERE derived_from IS NULL OR caller_id = config_id
GROUP BY run_id, experiment, started_at, is_latest, configuration, caller, stage, kind, config_id, caller_id
