-- Made from deploy/bigquery by `make deploy-files`; do not edit.
-- sha256 ca36690969f305f0448f97f41546a749fabcd12f6af90d15892df928070306d4

CREATE VIEW run_history AS
SELECT
  run_id,
  experiment,
  started_at,
  finished_at,
  state,
  dataset_fingerprint,
  DATE_DIFF('MICROSECOND', started_at, finished_at) / 1000000 AS duration_s,
  calls,
  ledger_hits,
  failures,
  CASE
    WHEN (
      calls + ledger_hits
    ) <> 0
    THEN ledger_hits / (
      calls + ledger_hits
    )
    ELSE NULL
  END AS ledger_share,
  CASE WHEN calls <> 0 THEN failures / calls ELSE NULL END AS failures_per_call,
  ARRAY_LENGTH(warnings) AS warnings,
  ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
FROM runs;

CREATE VIEW answers_of_configuration AS
SELECT
  r.run_id,
  r.experiment,
  a.started_at,
  r.is_latest,
  c.name AS configuration,
  a.query_id,
  q.text AS query,
  a.sample,
  a.status,
  a.answer,
  a.reference,
  a.message,
  ARRAY_LENGTH(a.contexts) AS contexts,
  a.contexts_left_out,
  ARRAY_LENGTH(a.citations) AS citations,
  a.service,
  a.model,
  a.model_version,
  a.prompt_hash,
  a.input_tokens,
  a.cached_tokens,
  a.output_tokens,
  a.seconds,
  a.first_token_s,
  a.steps,
  a.cost,
  c.position,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN answers AS a
  ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
LEFT JOIN query_metrics AS q
  ON q.run_id = a.run_id
  AND q.started_at = a.started_at
  AND q.config_id = a.config_id
  AND q.query_id = a.query_id;

CREATE VIEW configuration_costs AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  c.position,
  c.name AS configuration,
  COALESCE(u.calls, 0) AS calls,
  COALESCE(u.shared_calls, 0) AS shared_calls,
  COALESCE(u.input_tokens, 0) AS input_tokens,
  COALESCE(u.output_tokens, 0) AS output_tokens,
  CASE
    WHEN u.config_id IS NULL
    THEN 0.0
    WHEN u.without_price > 0
    THEN NULL
    ELSE u.cost
  END AS cost,
  q.queries,
  c.config_id,
  r.ledger_hits,
  COALESCE(h.calls, 0) AS ledger_calls,
  CASE WHEN h.without_price > 0 THEN NULL ELSE COALESCE(h.cost, 0.0) END AS ledger_cost
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
LEFT JOIN (
  SELECT
    s.run_id,
    s.started_at,
    used.config_id,
    SUM(used.calls) AS calls,
    SUM(used.shared_calls) AS shared_calls,
    SUM(used.input_tokens) AS input_tokens,
    SUM(used.output_tokens) AS output_tokens,
    SUM(CASE WHEN used.cost IS NULL THEN 1 ELSE 0 END) AS without_price,
    SUM(COALESCE(used.cost, 0.0)) AS cost
  FROM usage AS s
  CROSS JOIN UNNEST(s.configurations) AS _t0(used)
  GROUP BY
    s.run_id,
    s.started_at,
    used.config_id
) AS u
  ON u.run_id = c.run_id AND u.started_at = c.started_at AND u.config_id = c.config_id
LEFT JOIN (
  SELECT
    s.run_id,
    s.started_at,
    known.config_id,
    SUM(COALESCE(known.calls, known.ledger_hits)) AS calls,
    SUM(CASE WHEN known.cost IS NULL THEN 1 ELSE 0 END) AS without_price,
    SUM(known.cost) AS cost
  FROM usage AS s
  CROSS JOIN UNNEST(s.from_ledger) AS _t1(known)
  GROUP BY
    s.run_id,
    s.started_at,
    known.config_id
) AS h
  ON h.run_id = c.run_id AND h.started_at = c.started_at AND h.config_id = c.config_id
LEFT JOIN (
  SELECT
    m.run_id,
    m.started_at,
    m.config_id,
    MAX(m.queries + m.failed + COALESCE(m.undefined, 0) + m.missing) AS queries
  FROM configuration_metrics AS m
  WHERE
    m.slice = 'all'
  GROUP BY
    m.run_id,
    m.started_at,
    m.config_id
) AS q
  ON q.run_id = c.run_id AND q.started_at = c.started_at AND q.config_id = c.config_id;

CREATE VIEW configuration_history AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  r.dataset_fingerprint,
  c.config_id,
  c.name AS configuration,
  c.position,
  c.retriever,
  c.dialect,
  c.parameters,
  c.derived_from,
  LAG(r.run_id) OVER earlier AS previous_run_id,
  LAG(r.started_at) OVER earlier AS previous_started_at,
  LAG(c.config_id) OVER earlier AS previous_config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
WINDOW earlier AS (
  PARTITION BY r.experiment, r.dataset_fingerprint, c.name
  ORDER BY r.started_at NULLS FIRST, r.run_id NULLS FIRST
);

CREATE VIEW contexts_of_answer AS
SELECT
  r.run_id,
  r.experiment,
  a.started_at,
  r.is_latest,
  c.name AS configuration,
  a.query_id,
  a.sample,
  context.rank,
  context.doc_id,
  t.text,
  CASE
    WHEN a.citations IS NULL OR ARRAY_LENGTH(a.citations) = 0
    THEN FALSE
    WHEN ARRAY_CONTAINS(a.citations, context.doc_id)
    THEN TRUE
    WHEN context.doc_id IS NULL OR ARRAY_LENGTH(a.citations) <> LIST_COUNT(a.citations)
    THEN NULL
    ELSE FALSE
  END AS is_cited,
  context.text_hash,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN answers AS a
  ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
CROSS JOIN UNNEST(a.contexts) AS _t0(context)
LEFT JOIN texts AS t
  ON t.run_id = a.run_id
  AND t.started_at = a.started_at
  AND t.text_hash = context.text_hash;

CREATE VIEW cost AS
SELECT
  TO_TIMESTAMP(hours * 3600) AS started_hour,
  CAST(CAST('1970-01-01' AS DATE) + INTERVAL (hours // 24) DAY AS DATE) AS started_day,
  experiment,
  COUNT(*) AS runs,
  SUM(calls) AS calls,
  SUM(ledger_hits) AS ledger_hits,
  SUM(failures) AS failures,
  SUM(duration_s) AS duration_s,
  CASE
    WHEN (
      SUM(calls) + SUM(ledger_hits)
    ) <> 0
    THEN SUM(ledger_hits) / (
      SUM(calls) + SUM(ledger_hits)
    )
    ELSE NULL
  END AS ledger_share
FROM (
  SELECT
    experiment,
    calls,
    ledger_hits,
    failures,
    duration_s,
    EPOCH_US(started_at) // 3600000000 AS hours
  FROM run_history
) AS r
GROUP BY
  hours,
  experiment;

CREATE VIEW differences AS
SELECT
  r.run_id,
  r.experiment,
  d.started_at,
  r.is_latest,
  d.slice,
  d.metric,
  c.name AS configuration,
  c.dialect,
  b.name AS baseline,
  d.difference,
  d.ci_low,
  d.ci_high,
  d.std_error,
  d.p_value,
  d.p_method,
  d.p_adjusted,
  d.q_value,
  d.t_p_value,
  d.effect_size,
  d.detectable,
  d.queries,
  d.unpaired,
  d.wins,
  d.ties,
  d.losses,
  d.clusters,
  d.stage,
  d.lower_is_better,
  c.position,
  c.config_id,
  b.config_id AS baseline_id
FROM run_history AS r
JOIN comparisons AS d
  ON d.run_id = r.run_id AND d.started_at = r.started_at
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at AND c.config_id = d.config_id
JOIN configurations AS b
  ON b.run_id = r.run_id AND b.started_at = r.started_at AND b.config_id = d.baseline;

CREATE VIEW leaderboard AS
SELECT
  r.run_id,
  r.experiment,
  m.started_at,
  r.is_latest,
  m.metric,
  c.dialect,
  RANK() OVER (
    PARTITION BY m.started_at, r.run_id, c.dialect, m.metric
    ORDER BY m.sign * m.mean DESC
  ) AS rank,
  c.name AS configuration,
  m.mean,
  m.ci_low,
  m.ci_high,
  m.std_error,
  m.joint_low,
  m.joint_high,
  m.may_be_best,
  COALESCE(m.panel, 'retrieval') AS panel,
  m.queries,
  m.empty,
  m.failed,
  COALESCE(m.undefined, 0) AS undefined,
  m.missing,
  m.lowest,
  m.highest,
  m.tie_lowest,
  m.tie_highest,
  m.equal_to,
  c.position,
  c.config_id,
  m.sign
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  SELECT
    *,
    CASE
      WHEN COALESCE(
        lower_is_better,
        REGEXP_MATCHES(
          metric,
          '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\b'
        )
      )
      THEN -1
      ELSE 1
    END AS sign
  FROM configuration_metrics
  WHERE
    slice = 'all'
) AS m
  ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id;

CREATE VIEW monitoring AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  c.name AS configuration,
  m.metric,
  m.mode,
  m.state,
  m.alarm,
  m.change,
  m.low,
  m.high,
  m.lowest_high,
  m.highest_low,
  m.nights,
  m.since,
  m.tolerance,
  m.baseline_run,
  m.baseline_mean,
  m.queries,
  m.skipped,
  m.quarter,
  m.config_id
FROM run_history AS r
JOIN monitor AS m
  ON m.run_id = r.run_id AND m.started_at = r.started_at
JOIN configurations AS c
  ON c.run_id = m.run_id AND c.started_at = m.started_at AND c.config_id = m.config_id;

CREATE VIEW per_query AS
SELECT
  r.run_id,
  r.experiment,
  q.started_at,
  r.is_latest,
  c.name AS configuration,
  q.query_id,
  q.text,
  COALESCE(item.status, q.status) AS status,
  item.reason,
  q.slices,
  item.metric,
  item.value,
  item.tie_lowest,
  item.tie_highest,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN query_metrics AS q
  ON q.run_id = r.run_id AND q.started_at = r.started_at AND q.config_id = c.config_id
CROSS JOIN UNNEST(q.metrics) AS _t0(item);

CREATE VIEW run_choices AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  NOT m.run_id IS NULL AS has_values,
  NOT m.run_id IS NULL
  AND ROW_NUMBER() OVER (
    PARTITION BY r.experiment, NOT m.run_id IS NULL
    ORDER BY r.started_at DESC, r.run_id DESC
  ) = 1 AS is_last_good
FROM run_history AS r
LEFT JOIN (
  SELECT DISTINCT
    run_id,
    started_at
  FROM configuration_metrics
  WHERE
    slice = 'all' AND NOT mean IS NULL
) AS m
  ON m.run_id = r.run_id AND m.started_at = r.started_at;

CREATE VIEW slice_leaderboard AS
SELECT
  r.run_id,
  r.experiment,
  m.started_at,
  r.is_latest,
  m.slice,
  REPLACE(REGEXP_REPLACE(m.parted, '=[^' || CHR(31) || ']*', '', 'g'), CHR(31), '×') AS attribute,
  REPLACE(
    REGEXP_REPLACE(m.parted, '(^|' || CHR(31) || ')[^=' || CHR(31) || ']*=', '\1', 'g'),
    CHR(31),
    ' × '
  ) AS value,
  m.metric,
  c.dialect,
  RANK() OVER (
    PARTITION BY m.started_at, r.run_id, c.dialect, m.slice, m.metric
    ORDER BY m.sign * m.mean DESC
  ) AS rank,
  c.name AS configuration,
  m.mean,
  m.ci_low,
  m.ci_high,
  m.std_error,
  m.joint_low,
  m.joint_high,
  m.may_be_best,
  COALESCE(m.panel, 'retrieval') AS panel,
  m.queries,
  m.empty,
  m.failed,
  COALESCE(m.undefined, 0) AS undefined,
  m.missing,
  m.lowest,
  m.highest,
  m.tie_lowest,
  m.tie_highest,
  m.equal_to,
  c.position,
  c.config_id,
  m.sign
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  SELECT
    *,
    REGEXP_REPLACE(slice, '×([^×=]*)=', CHR(31) || '\1=', 'g') AS parted,
    CASE
      WHEN COALESCE(
        lower_is_better,
        REGEXP_MATCHES(
          metric,
          '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\b'
        )
      )
      THEN -1
      ELSE 1
    END AS sign
  FROM configuration_metrics
  WHERE
    slice <> 'all'
) AS m
  ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id;

CREATE VIEW trend AS
SELECT
  p.experiment,
  p.dataset_fingerprint,
  p.configuration,
  p.dialect,
  p.metric,
  p.started_at,
  p.run_id,
  p.is_latest,
  p.mean,
  p.ci_low,
  p.ci_high,
  p.std_error,
  p.queries,
  p.empty,
  p.failed,
  p.undefined,
  p.missing,
  p.lowest,
  p.highest,
  p.sign,
  b.mean AS previous_mean,
  p.mean - b.mean AS change,
  p.config_id <> b.config_id AS parameters_changed,
  b.run_id AS previous_run_id,
  b.started_at AS previous_started_at,
  p.config_id,
  b.config_id AS previous_config_id
FROM (
  SELECT
    r.experiment,
    r.dataset_fingerprint,
    r.is_latest,
    c.name AS configuration,
    c.dialect,
    m.run_id,
    m.started_at,
    m.config_id,
    m.slice,
    m.metric,
    m.mean,
    m.ci_low,
    m.ci_high,
    m.std_error,
    m.queries,
    m.empty,
    m.failed,
    COALESCE(m.undefined, 0) AS undefined,
    m.missing,
    m.lowest,
    m.highest,
    CASE
      WHEN COALESCE(
        m.lower_is_better,
        REGEXP_MATCHES(
          m.metric,
          '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\b'
        )
      )
      THEN -1
      ELSE 1
    END AS sign,
    COALESCE(
      LAST_VALUE(CASE WHEN m.mean IS NULL THEN NULL ELSE m.run_id END IGNORE NULLS) OVER of_name,
      LAST_VALUE(CASE WHEN m.mean IS NULL THEN NULL ELSE m.run_id END IGNORE NULLS) OVER of_parameters
    ) AS previous_run_id,
    COALESCE(
      LAST_VALUE(CASE WHEN m.mean IS NULL THEN NULL ELSE m.started_at END IGNORE NULLS) OVER of_name,
      LAST_VALUE(CASE WHEN m.mean IS NULL THEN NULL ELSE m.started_at END IGNORE NULLS) OVER of_parameters
    ) AS previous_started_at,
    COALESCE(
      LAST_VALUE(CASE WHEN m.mean IS NULL THEN NULL ELSE m.config_id END IGNORE NULLS) OVER of_name,
      LAST_VALUE(CASE WHEN m.mean IS NULL THEN NULL ELSE m.config_id END IGNORE NULLS) OVER of_parameters
    ) AS previous_config_id
  FROM run_history AS r
  JOIN configurations AS c
    ON c.run_id = r.run_id AND c.started_at = r.started_at
  JOIN configuration_metrics AS m
    ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id
  WHERE
    m.slice = 'all'
  WINDOW of_name AS (
    PARTITION BY r.experiment, r.dataset_fingerprint, c.name, m.metric
    ORDER BY r.started_at NULLS FIRST, r.run_id NULLS FIRST
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ), of_parameters AS (
    PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric
    ORDER BY r.started_at NULLS FIRST, r.run_id NULLS FIRST
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
) AS p
LEFT JOIN configuration_metrics AS b
  ON b.run_id = p.previous_run_id
  AND b.started_at = p.previous_started_at
  AND b.config_id = p.previous_config_id
  AND b.slice = p.slice
  AND b.metric = p.metric;

CREATE VIEW unanswered AS
SELECT
  r.run_id,
  r.experiment,
  f.started_at,
  r.is_latest,
  c.name AS configuration,
  o.name AS caller,
  f.query_id,
  f.stage,
  f.kind,
  f.attempts,
  f.message,
  f.metric,
  c.config_id,
  o.config_id AS caller_id,
  c.derived_from
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN failures AS f
  ON f.run_id = r.run_id AND f.started_at = r.started_at
JOIN configurations AS o
  ON o.run_id = r.run_id AND o.started_at = r.started_at AND o.config_id = f.config_id
WHERE
  f.config_id = c.config_id
  OR f.stage <> 'judge'
  AND (
    f.config_id = c.derived_from
    OR CASE
      WHEN c.parts IS NULL OR ARRAY_LENGTH(c.parts) = 0
      THEN FALSE
      WHEN ARRAY_CONTAINS(c.parts, f.config_id)
      THEN TRUE
      WHEN f.config_id IS NULL OR ARRAY_LENGTH(c.parts) <> LIST_COUNT(c.parts)
      THEN NULL
      ELSE FALSE
    END
  );

CREATE VIEW verdicts_of_configuration AS
SELECT
  r.run_id,
  r.experiment,
  a.started_at,
  r.is_latest,
  c.name AS configuration,
  a.query_id,
  a.sample AS answer_sample,
  v.step,
  NULLIF(a.owner, 'whole') AS owner,
  v.position,
  COALESCE(m.text, n.text) AS claim,
  m.quote_start,
  m.quote_end,
  a.evidence,
  a.rank,
  a.doc_id,
  a.is_cited,
  t.text AS evidence_text,
  v.verdict,
  v.grade,
  v.reason,
  v.sample,
  COALESCE(v.is_repeat, FALSE) AS is_repeat,
  v.judge,
  v.model_version,
  v.prompt_hash,
  v.item_id,
  v.right_hash AS evidence_hash,
  c.config_id
FROM run_history AS r
JOIN configurations AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  SELECT
    b.run_id,
    b.started_at,
    b.config_id,
    b.query_id,
    b.sample,
    b.evidence,
    b.evidence_hash,
    b.rank,
    b.doc_id,
    b.is_cited,
    owner,
    CASE owner
      WHEN 'answer'
      THEN b.answer_hash
      WHEN 'reference'
      THEN b.reference_hash
    END AS owner_hash
  FROM (
    SELECT
      run_id,
      started_at,
      config_id,
      query_id,
      sample,
      answer_hash,
      reference_hash,
      'context' AS evidence,
      context.text_hash AS evidence_hash,
      context.rank,
      context.doc_id,
      CASE
        WHEN citations IS NULL OR ARRAY_LENGTH(citations) = 0
        THEN FALSE
        WHEN ARRAY_CONTAINS(citations, context.doc_id)
        THEN TRUE
        WHEN context.doc_id IS NULL OR ARRAY_LENGTH(citations) <> LIST_COUNT(citations)
        THEN NULL
        ELSE FALSE
      END AS is_cited
    FROM answers
    CROSS JOIN UNNEST(contexts) AS _t0(context)
    UNION ALL
    SELECT
      run_id,
      started_at,
      config_id,
      query_id,
      sample,
      answer_hash,
      reference_hash,
      'reference' AS evidence,
      reference_hash AS evidence_hash,
      NULL AS rank,
      NULL AS doc_id,
      NULL AS is_cited
    FROM answers
    UNION ALL
    SELECT
      run_id,
      started_at,
      config_id,
      query_id,
      sample,
      answer_hash,
      reference_hash,
      'answer' AS evidence,
      answer_hash AS evidence_hash,
      NULL AS rank,
      NULL AS doc_id,
      NULL AS is_cited
    FROM answers
  ) AS b
  CROSS JOIN UNNEST(['answer', 'reference', 'whole']) AS _t1(owner)
  WHERE
    owner <> b.evidence
) AS a
  ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
JOIN verdicts AS v
  ON v.run_id = a.run_id
  AND v.started_at = a.started_at
  AND v.query_id = a.query_id
  AND v.right_hash = a.evidence_hash
  AND (
    v.step = 'support'
  ) = (
    a.owner <> 'whole'
  )
  AND NOT v.is_sentinel
  AND (
    v.step <> 'grade' OR a.evidence = 'context'
  )
  AND (
    NOT v.step IN ('answer_kind', 'nugget_assign') OR a.evidence = 'answer'
  )
LEFT JOIN claims AS m
  ON m.run_id = v.run_id
  AND m.started_at = v.started_at
  AND m.query_id = v.query_id
  AND m.items_hash = v.items_hash
  AND m.position = v.position
  AND m.text_hash = a.owner_hash
  AND m.sample = CASE WHEN v.is_repeat THEN 0 ELSE v.sample END
LEFT JOIN texts AS n
  ON n.run_id = v.run_id AND n.started_at = v.started_at AND n.text_hash = v.left_hash
LEFT JOIN texts AS t
  ON t.run_id = v.run_id AND t.started_at = v.started_at AND t.text_hash = v.right_hash
WHERE
  a.owner = 'whole' OR NOT m.text IS NULL;

CREATE VIEW latest_answers_of_configuration AS
SELECT
  *
FROM answers_of_configuration
WHERE
  is_latest;

CREATE VIEW latest_differences AS
SELECT
  *
FROM differences
WHERE
  is_latest;

CREATE VIEW stages AS
SELECT
  d.run_id,
  d.experiment,
  d.started_at,
  d.is_latest,
  d.stage,
  d.slice,
  d.metric,
  d.configuration,
  d.baseline AS without_stage,
  d.difference AS gain,
  d.ci_low,
  d.ci_high,
  d.p_value,
  d.p_adjusted,
  d.queries,
  d.wins,
  d.ties,
  d.losses,
  CASE
    WHEN one.queries <> 0
    THEN (
      one.calls + one.ledger_calls
    ) / one.queries
    ELSE NULL
  END - CASE
    WHEN other.queries <> 0
    THEN (
      other.calls + other.ledger_calls
    ) / other.queries
    ELSE NULL
  END AS further_calls,
  CASE
    WHEN one.queries <> 0
    THEN (
      (
        one.cost + one.ledger_cost
      ) * 1000
    ) / one.queries
    ELSE NULL
  END - CASE
    WHEN other.queries <> 0
    THEN (
      (
        other.cost + other.ledger_cost
      ) * 1000
    ) / other.queries
    ELSE NULL
  END AS further_cost,
  d.config_id,
  d.baseline_id
FROM differences AS d
JOIN configuration_costs AS one
  ON one.run_id = d.run_id
  AND one.started_at = d.started_at
  AND one.config_id = d.config_id
JOIN configuration_costs AS other
  ON other.run_id = d.run_id
  AND other.started_at = d.started_at
  AND other.config_id = d.baseline_id
WHERE
  NOT d.stage IS NULL;

CREATE VIEW latest_leaderboard AS
SELECT
  *
FROM leaderboard
WHERE
  is_latest;

CREATE VIEW trade_off AS
SELECT
  l.run_id,
  l.experiment,
  l.started_at,
  l.is_latest,
  l.metric,
  l.dialect,
  l.configuration,
  k.cost_of_1000_queries,
  k.calls,
  l.mean,
  l.ci_low,
  l.ci_high,
  l.mean = l.sign * MAX(l.sign * l.mean) OVER cheaper
  AND k.cost_of_1000_queries = MIN(k.cost_of_1000_queries) OVER alike AS is_front,
  l.queries,
  l.position,
  l.config_id,
  k.ledger_hits
FROM leaderboard AS l
JOIN (
  SELECT
    run_id,
    started_at,
    config_id,
    calls,
    ledger_hits,
    CASE
      WHEN queries <> 0
      THEN (
        (
          cost + ledger_cost
        ) * 1000
      ) / queries
      ELSE NULL
    END AS cost_of_1000_queries
  FROM configuration_costs
) AS k
  ON k.run_id = l.run_id AND k.started_at = l.started_at AND k.config_id = l.config_id
JOIN (
  SELECT DISTINCT
    run_id,
    started_at
  FROM usage
) AS called
  ON called.run_id = l.run_id AND called.started_at = l.started_at
WHERE
  NOT l.mean IS NULL AND NOT k.cost_of_1000_queries IS NULL
WINDOW cheaper AS (
  PARTITION BY l.run_id, l.dialect, l.metric
  ORDER BY k.cost_of_1000_queries NULLS FIRST
), alike AS (
  PARTITION BY l.run_id, l.dialect, l.metric
  ORDER BY l.mean NULLS FIRST
  RANGE BETWEEN CURRENT ROW AND CURRENT ROW
);

CREATE VIEW latest_per_query AS
SELECT
  *
FROM per_query
WHERE
  is_latest;

CREATE VIEW side_by_side AS
SELECT
  d.run_id,
  d.experiment,
  q.started_at,
  d.is_latest,
  d.metric,
  d.configuration,
  d.baseline,
  q.query_id,
  q.text,
  COALESCE(v.status, q.status) AS status,
  COALESCE(w.status, b.status) AS baseline_status,
  v.value,
  w.value AS baseline_value,
  v.value - w.value AS difference,
  q.slices,
  d.config_id,
  d.baseline_id
FROM differences AS d
JOIN query_metrics AS q
  ON q.run_id = d.run_id AND q.started_at = d.started_at AND q.config_id = d.config_id
JOIN query_metrics AS b
  ON b.run_id = d.run_id
  AND b.started_at = d.started_at
  AND b.config_id = d.baseline_id
  AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = d.run_id
  AND v.started_at = d.started_at
  AND v.config_id = d.config_id
  AND v.query_id = q.query_id
  AND v.metric = d.metric
LEFT JOIN per_query AS w
  ON w.run_id = d.run_id
  AND w.started_at = d.started_at
  AND w.config_id = d.baseline_id
  AND w.query_id = q.query_id
  AND w.metric = d.metric
WHERE
  d.slice = 'all';

CREATE VIEW latest_slice_leaderboard AS
SELECT
  *
FROM slice_leaderboard
WHERE
  is_latest;

CREATE VIEW query_changes AS
SELECT
  t.run_id,
  t.experiment,
  q.started_at,
  t.is_latest,
  t.configuration,
  t.metric,
  q.query_id,
  q.text,
  COALESCE(v.status, q.status) AS status,
  COALESCE(w.status, b.status) AS previous_status,
  v.value,
  w.value AS previous_value,
  v.value - w.value AS difference,
  q.slices,
  t.previous_run_id,
  t.previous_started_at,
  t.config_id,
  t.previous_config_id
FROM trend AS t
JOIN query_metrics AS q
  ON q.run_id = t.run_id AND q.started_at = t.started_at AND q.config_id = t.config_id
JOIN query_metrics AS b
  ON b.run_id = t.previous_run_id
  AND b.started_at = t.previous_started_at
  AND b.config_id = t.previous_config_id
  AND b.query_id = q.query_id
LEFT JOIN per_query AS v
  ON v.run_id = t.run_id
  AND v.started_at = t.started_at
  AND v.config_id = t.config_id
  AND v.query_id = q.query_id
  AND v.metric = t.metric
LEFT JOIN per_query AS w
  ON w.run_id = t.previous_run_id
  AND w.started_at = t.previous_started_at
  AND w.config_id = t.previous_config_id
  AND w.query_id = q.query_id
  AND w.metric = t.metric;

CREATE VIEW failure_kinds AS
SELECT
  run_id,
  experiment,
  started_at,
  is_latest,
  configuration,
  caller,
  stage,
  kind,
  COUNT(*) AS failures,
  COUNT(DISTINCT query_id) AS queries,
  SUM(attempts) AS attempts,
  MIN(message) AS example,
  config_id,
  caller_id
FROM unanswered
WHERE
  derived_from IS NULL OR caller_id = config_id
GROUP BY
  run_id,
  experiment,
  started_at,
  is_latest,
  configuration,
  caller,
  stage,
  kind,
  config_id,
  caller_id;

CREATE VIEW latest_verdicts_of_configuration AS
SELECT
  *
FROM verdicts_of_configuration
WHERE
  is_latest;

CREATE VIEW latest_side_by_side AS
SELECT
  *
FROM side_by_side
WHERE
  is_latest;

CREATE VIEW regressions AS
SELECT
  run_id,
  experiment,
  started_at,
  is_latest,
  configuration,
  dialect,
  metric,
  mean,
  previous_mean,
  difference,
  std_error,
  CASE WHEN queries < 20 THEN NULL ELSE difference - 1.96 * std_error END AS ci_low,
  CASE WHEN queries < 20 THEN NULL ELSE difference + 1.96 * std_error END AS ci_high,
  CASE
    WHEN queries = 0
    THEN 'nothing to compare'
    WHEN better + worse = 0
    THEN 'same'
    WHEN queries < 20
    THEN 'unclear'
    WHEN sign * difference + 1.96 * std_error < 0
    THEN 'worse'
    WHEN sign * difference - 1.96 * std_error > 0
    THEN 'better'
    ELSE 'unclear'
  END AS verdict,
  queries,
  unpaired,
  better,
  worse,
  queries - better - worse AS same,
  parameters_changed,
  previous_run_id,
  previous_started_at,
  config_id,
  previous_config_id
FROM (
  SELECT
    t.run_id,
    t.experiment,
    t.started_at,
    t.is_latest,
    t.configuration,
    t.dialect,
    t.metric,
    t.parameters_changed,
    t.previous_run_id,
    t.previous_started_at,
    t.config_id,
    t.previous_config_id,
    t.sign,
    AVG(CASE WHEN q.difference IS NULL THEN NULL ELSE q.value END) AS mean,
    AVG(CASE WHEN q.difference IS NULL THEN NULL ELSE q.previous_value END) AS previous_mean,
    AVG(q.difference) AS difference,
    CASE
      WHEN SQRT(COUNT(q.difference)) <> 0
      THEN STDDEV_SAMP(q.difference) / SQRT(COUNT(q.difference))
      ELSE NULL
    END AS std_error,
    COUNT(q.difference) AS queries,
    COUNT(q.query_id) - COUNT(q.difference) AS unpaired,
    COUNT(CASE WHEN t.sign * q.difference > 0 THEN 1 ELSE NULL END) AS better,
    COUNT(CASE WHEN t.sign * q.difference < 0 THEN 1 ELSE NULL END) AS worse
  FROM trend AS t
  LEFT JOIN query_changes AS q
    ON q.run_id = t.run_id
    AND q.started_at = t.started_at
    AND q.config_id = t.config_id
    AND q.metric = t.metric
  GROUP BY
    t.run_id,
    t.experiment,
    t.started_at,
    t.is_latest,
    t.configuration,
    t.dialect,
    t.metric,
    t.parameters_changed,
    t.previous_run_id,
    t.previous_started_at,
    t.config_id,
    t.previous_config_id,
    t.sign
) AS changes;

CREATE VIEW coverage AS
SELECT
  r.run_id,
  r.experiment,
  r.started_at,
  r.is_latest,
  c.name AS configuration,
  c.retriever,
  c.dialect,
  c.position,
  c.config_id,
  o.name AS cut_from,
  m.panel,
  m.queries,
  m.empty,
  m.failed,
  m.undefined,
  m.missing,
  m.not_asked,
  c.dropped_at,
  CASE WHEN m.queries <> 0 THEN m.empty / m.queries ELSE NULL END AS empty_rate,
  m.failure_rate,
  COALESCE(f.failed_invalid, c.none_failed) AS failed_invalid,
  COALESCE(f.failed_permission, c.none_failed) AS failed_permission,
  COALESCE(f.failed_not_found, c.none_failed) AS failed_not_found,
  COALESCE(f.failed_quota, c.none_failed) AS failed_quota,
  COALESCE(f.failed_timeout, c.none_failed) AS failed_timeout,
  COALESCE(f.failed_unavailable, c.none_failed) AS failed_unavailable,
  COALESCE(f.failed_malformed, c.none_failed) AS failed_malformed,
  COALESCE(f.failed_blocked, c.none_failed) AS failed_blocked,
  COALESCE(f.failed_truncated, c.none_failed) AS failed_truncated,
  COALESCE(f.failed_over_budget, c.none_failed) AS failed_over_budget
FROM run_history AS r
JOIN (
  SELECT
    *,
    CASE WHEN derived_from IS NULL THEN 0 ELSE NULL END AS none_failed
  FROM configurations
) AS c
  ON c.run_id = r.run_id AND c.started_at = r.started_at
JOIN (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY run_id, started_at, config_id
      ORDER BY COALESCE(failure_rate, -1) DESC, panel <> 'retrieval' NULLS FIRST, panel NULLS FIRST
    ) AS place
  FROM (
    SELECT
      run_id,
      started_at,
      config_id,
      panel,
      queries,
      empty,
      failed,
      undefined,
      missing,
      not_asked,
      CASE
        WHEN (
          queries + undefined + failed
        ) <> 0
        THEN failed / (
          queries + undefined + failed
        )
        ELSE NULL
      END AS failure_rate
    FROM (
      SELECT
        run_id,
        started_at,
        config_id,
        COALESCE(panel, 'retrieval') AS panel,
        MAX(queries) AS queries,
        MAX(empty) AS empty,
        MAX(failed) AS failed,
        MAX(COALESCE(undefined, 0)) AS undefined,
        MAX(missing) AS missing,
        MAX(COALESCE(not_asked, 0)) AS not_asked
      FROM configuration_metrics
      WHERE
        slice = 'all'
      GROUP BY
        run_id,
        started_at,
        config_id,
        COALESCE(panel, 'retrieval')
    ) AS counts
  ) AS rates
) AS m
  ON m.run_id = r.run_id
  AND m.started_at = r.started_at
  AND m.config_id = c.config_id
  AND m.place = 1
LEFT JOIN configurations AS o
  ON o.run_id = r.run_id
  AND o.started_at = r.started_at
  AND o.config_id = c.derived_from
LEFT JOIN (
  SELECT
    run_id,
    started_at,
    config_id,
    SUM(CASE WHEN kind = 'invalid' THEN failures ELSE 0 END) AS failed_invalid,
    SUM(CASE WHEN kind = 'permission' THEN failures ELSE 0 END) AS failed_permission,
    SUM(CASE WHEN kind = 'not_found' THEN failures ELSE 0 END) AS failed_not_found,
    SUM(CASE WHEN kind = 'quota' THEN failures ELSE 0 END) AS failed_quota,
    SUM(CASE WHEN kind = 'timeout' THEN failures ELSE 0 END) AS failed_timeout,
    SUM(CASE WHEN kind = 'unavailable' THEN failures ELSE 0 END) AS failed_unavailable,
    SUM(CASE WHEN kind = 'malformed' THEN failures ELSE 0 END) AS failed_malformed,
    SUM(CASE WHEN kind = 'blocked' THEN failures ELSE 0 END) AS failed_blocked,
    SUM(CASE WHEN kind = 'truncated' THEN failures ELSE 0 END) AS failed_truncated,
    SUM(CASE WHEN kind = 'over_budget' THEN failures ELSE 0 END) AS failed_over_budget
  FROM failure_kinds
  GROUP BY
    run_id,
    started_at,
    config_id
) AS f
  ON f.run_id = r.run_id AND f.started_at = r.started_at AND f.config_id = c.config_id;
