-- Which texts was an answer made from, and which of them does it cite?
SELECT
  r.run_id, r.experiment, a.started_at, r.is_latest, c.name AS configuration, a.query_id, a.sample,
  context.rank, context.doc_id, t.text, context.doc_id IN UNNEST(a.citations) AS is_cited, context.text_hash, c.config_id
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN answers AS a ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
CROSS JOIN UNNEST(a.contexts) AS context
LEFT JOIN texts AS t ON t.run_id = a.run_id AND t.started_at = a.started_at AND t.text_hash = context.text_hash
