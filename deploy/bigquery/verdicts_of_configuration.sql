-- What did the judge say of every answer: which claim does which text support, how useful is a context, what kind of
-- answer is it? `claim` is one of the answer or of the reference answer, as `owner` says, or a nugget; it is null where
-- the verdict is of the text as a whole. The text that the verdict rests on is a context (`rank`, `doc_id`), the
-- reference answer or the answer, as `evidence` says. A verdict is stored once, and shows here under every configuration
-- with the same texts; that of a criterion, beside every text that is equal to the judged one. Those that repeat a
-- question (`is_repeat`) count for no value.
SELECT
  r.run_id, r.experiment, a.started_at, r.is_latest, c.name AS configuration, a.query_id, a.sample AS answer_sample,
  v.step, NULLIF(a.owner, 'whole') AS owner, v.position, COALESCE(m.text, n.text) AS claim, m.quote_start, m.quote_end,
  a.evidence, a.rank, a.doc_id, a.is_cited, t.text AS evidence_text, v.verdict, v.grade, v.reason,
  v.sample, COALESCE(v.is_repeat, FALSE) AS is_repeat, v.judge, v.model_version, v.prompt_hash, v.item_id,
  v.right_hash AS evidence_hash, c.config_id
FROM run_history AS r
JOIN configurations AS c ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  SELECT
    b.run_id, b.started_at, b.config_id, b.query_id, b.sample, b.evidence, b.evidence_hash, b.rank, b.doc_id,
    b.is_cited, owner,
    CASE owner WHEN 'answer' THEN b.answer_hash WHEN 'reference' THEN b.reference_hash END AS owner_hash
  FROM (
    SELECT
      run_id, started_at, config_id, query_id, sample, answer_hash, reference_hash, 'context' AS evidence,
      context.text_hash AS evidence_hash, context.rank, context.doc_id, context.doc_id IN UNNEST(citations) AS is_cited
    FROM answers
    CROSS JOIN UNNEST(contexts) AS context
    UNION ALL
    SELECT
      run_id, started_at, config_id, query_id, sample, answer_hash, reference_hash, 'reference' AS evidence,
      reference_hash AS evidence_hash, NULL AS rank, NULL AS doc_id, NULL AS is_cited
    FROM answers
    UNION ALL
    SELECT
      run_id, started_at, config_id, query_id, sample, answer_hash, reference_hash, 'answer' AS evidence,
      answer_hash AS evidence_hash, NULL AS rank, NULL AS doc_id, NULL AS is_cited
    FROM answers
  ) AS b
  CROSS JOIN UNNEST(['answer', 'reference', 'whole']) AS owner
  WHERE owner != b.evidence
) AS a ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
JOIN verdicts AS v
  ON v.run_id = a.run_id AND v.started_at = a.started_at AND v.query_id = a.query_id AND v.right_hash = a.evidence_hash
  AND (v.step = 'support') = (a.owner != 'whole') AND NOT v.is_sentinel
  AND (v.step != 'grade' OR a.evidence = 'context')
  AND (v.step NOT IN ('answer_kind', 'nugget_assign') OR a.evidence = 'answer')
LEFT JOIN claims AS m
  ON m.run_id = v.run_id AND m.started_at = v.started_at AND m.query_id = v.query_id AND m.items_hash = v.items_hash
  AND m.position = v.position AND m.text_hash = a.owner_hash AND m.sample = IF(v.is_repeat, 0, v.sample)
LEFT JOIN texts AS n ON n.run_id = v.run_id AND n.started_at = v.started_at AND n.text_hash = v.left_hash
LEFT JOIN texts AS t ON t.run_id = v.run_id AND t.started_at = v.started_at AND t.text_hash = v.right_hash
WHERE a.owner = 'whole' OR m.text IS NOT NULL
