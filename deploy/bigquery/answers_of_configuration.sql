-- What did every configuration answer to a query, from how many contexts, and beside which reference answer? Tokens and
-- cost are those of the call that answered: configurations with an equal prompt share one call.
SELECT
  r.run_id, r.experiment, a.started_at, r.is_latest, c.name AS configuration, a.query_id, q.text AS query, a.sample,
  a.status, a.answer, a.reference, a.message, ARRAY_LENGTH(a.contexts) AS contexts, a.contexts_left_out,
  ARRAY_LENGTH(a.citations) AS citations, a.service, a.model, a.model_version, a.prompt_hash,
  a.input_tokens, a.cached_tokens, a.output_tokens, a.seconds, a.first_token_s, a.steps, a.cost, c.position, c.config_id
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN answers AS a ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
LEFT JOIN query_metrics AS q
  ON q.run_id = a.run_id AND q.started_at = a.started_at AND q.config_id = a.config_id AND q.query_id = a.query_id
