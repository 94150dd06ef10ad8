# Made from the tables and views by `make deploy-files`; do not edit. The views in
# views/ extend these with keys, measures and descriptions, and hide or show columns.

view: answers_of_configuration_columns {
  extension: required
  derived_table: {
    sql:
      WITH answers AS (
      SELECT * FROM `@{dataset}.answers` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      query_metrics AS (
      SELECT * FROM `@{dataset}.query_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
        AND q.query_id = a.query_id
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: query {
    type: string
    sql: ${TABLE}.query ;;
  }

  dimension: sample {
    type: number
    hidden: yes
    sql: ${TABLE}.sample ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: answer {
    type: string
    sql: ${TABLE}.answer ;;
  }

  dimension: reference {
    type: string
    sql: ${TABLE}.reference ;;
  }

  dimension: message {
    type: string
    sql: ${TABLE}.message ;;
  }

  dimension: contexts {
    type: number
    hidden: yes
    sql: ${TABLE}.contexts ;;
  }

  dimension: contexts_left_out {
    type: number
    hidden: yes
    sql: ${TABLE}.contexts_left_out ;;
  }

  dimension: citations {
    type: number
    hidden: yes
    sql: ${TABLE}.citations ;;
  }

  dimension: service {
    type: string
    sql: ${TABLE}.service ;;
  }

  dimension: model {
    type: string
    sql: ${TABLE}.model ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: prompt_hash {
    type: string
    sql: ${TABLE}.prompt_hash ;;
  }

  dimension: input_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.input_tokens ;;
  }

  dimension: cached_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.cached_tokens ;;
  }

  dimension: output_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.output_tokens ;;
  }

  dimension: seconds {
    type: number
    hidden: yes
    sql: ${TABLE}.seconds ;;
  }

  dimension: first_token_s {
    type: number
    hidden: yes
    sql: ${TABLE}.first_token_s ;;
  }

  dimension: steps {
    type: string
    sql: ${TABLE}.steps ;;
  }

  dimension: cost {
    type: number
    hidden: yes
    sql: ${TABLE}.cost ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: configuration_history_columns {
  extension: required
  derived_table: {
    sql:
      WITH configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
        ORDER BY r.started_at, r.run_id
      )
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: dataset_fingerprint {
    type: string
    sql: ${TABLE}.dataset_fingerprint ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: retriever {
    type: string
    sql: ${TABLE}.retriever ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: parameters {
    type: string
    sql: ${TABLE}.parameters ;;
  }

  dimension: derived_from {
    type: string
    sql: ${TABLE}.derived_from ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: contexts_of_answer_columns {
  extension: required
  derived_table: {
    sql:
      WITH answers AS (
      SELECT * FROM `@{dataset}.answers` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      texts AS (
      SELECT * FROM `@{dataset}.texts` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
        context.doc_id IN UNNEST(a.citations) AS is_cited,
        context.text_hash,
        c.config_id
      FROM run_history AS r
      JOIN configurations AS c
        ON c.run_id = r.run_id AND c.started_at = r.started_at
      JOIN answers AS a
        ON a.run_id = r.run_id AND a.started_at = r.started_at AND a.config_id = c.config_id
      CROSS JOIN UNNEST(a.contexts) AS context
      LEFT JOIN texts AS t
        ON t.run_id = a.run_id
        AND t.started_at = a.started_at
        AND t.text_hash = context.text_hash
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: sample {
    type: number
    hidden: yes
    sql: ${TABLE}.sample ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: doc_id {
    type: string
    sql: ${TABLE}.doc_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: is_cited {
    type: yesno
    sql: ${TABLE}.is_cited ;;
  }

  dimension: text_hash {
    type: string
    sql: ${TABLE}.text_hash ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: cost_columns {
  extension: required
  sql_table_name: `@{dataset}.cost` ;;

  dimension_group: started_hour {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_hour ;;
  }

  dimension: started_day {
    type: date
    convert_tz: no
    datatype: date
    sql: ${TABLE}.started_day ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension: runs {
    type: number
    hidden: yes
    sql: ${TABLE}.runs ;;
  }

  dimension: calls {
    type: number
    hidden: yes
    sql: ${TABLE}.calls ;;
  }

  dimension: ledger_hits {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_hits ;;
  }

  dimension: failures {
    type: number
    hidden: yes
    sql: ${TABLE}.failures ;;
  }

  dimension: duration_s {
    type: number
    hidden: yes
    sql: ${TABLE}.duration_s ;;
  }

  dimension: ledger_share {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_share ;;
  }
}

view: coverage_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      failures AS (
      SELECT * FROM `@{dataset}.failures` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      ),
      unanswered AS (
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
          f.config_id = c.derived_from OR f.config_id IN UNNEST(c.parts)
        )
      ),
      failure_kinds AS (
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
        caller_id
      )
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
        SAFE_DIVIDE(m.empty, m.queries) AS empty_rate,
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
          IF(derived_from IS NULL, 0, NULL) AS none_failed
        FROM configurations
      ) AS c
        ON c.run_id = r.run_id AND c.started_at = r.started_at
      JOIN (
        SELECT
          *,
          ROW_NUMBER() OVER (
            PARTITION BY run_id, started_at, config_id
            ORDER BY COALESCE(failure_rate, -1) DESC, panel <> 'retrieval', panel
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
            SAFE_DIVIDE(failed, queries + undefined + failed) AS failure_rate
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
          SUM(IF(kind = 'invalid', failures, 0)) AS failed_invalid,
          SUM(IF(kind = 'permission', failures, 0)) AS failed_permission,
          SUM(IF(kind = 'not_found', failures, 0)) AS failed_not_found,
          SUM(IF(kind = 'quota', failures, 0)) AS failed_quota,
          SUM(IF(kind = 'timeout', failures, 0)) AS failed_timeout,
          SUM(IF(kind = 'unavailable', failures, 0)) AS failed_unavailable,
          SUM(IF(kind = 'malformed', failures, 0)) AS failed_malformed,
          SUM(IF(kind = 'blocked', failures, 0)) AS failed_blocked,
          SUM(IF(kind = 'truncated', failures, 0)) AS failed_truncated,
          SUM(IF(kind = 'over_budget', failures, 0)) AS failed_over_budget
        FROM failure_kinds
        GROUP BY
          run_id,
          started_at,
          config_id
      ) AS f
        ON f.run_id = r.run_id AND f.started_at = r.started_at AND f.config_id = c.config_id
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: retriever {
    type: string
    sql: ${TABLE}.retriever ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: cut_from {
    type: string
    sql: ${TABLE}.cut_from ;;
  }

  dimension: panel {
    type: string
    sql: ${TABLE}.panel ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: not_asked {
    type: number
    hidden: yes
    sql: ${TABLE}.not_asked ;;
  }

  dimension: dropped_at {
    type: number
    hidden: yes
    sql: ${TABLE}.dropped_at ;;
  }

  dimension: empty_rate {
    type: number
    hidden: yes
    sql: ${TABLE}.empty_rate ;;
  }

  dimension: failure_rate {
    type: number
    hidden: yes
    sql: ${TABLE}.failure_rate ;;
  }

  dimension: failed_invalid {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_invalid ;;
  }

  dimension: failed_permission {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_permission ;;
  }

  dimension: failed_not_found {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_not_found ;;
  }

  dimension: failed_quota {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_quota ;;
  }

  dimension: failed_timeout {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_timeout ;;
  }

  dimension: failed_unavailable {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_unavailable ;;
  }

  dimension: failed_malformed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_malformed ;;
  }

  dimension: failed_blocked {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_blocked ;;
  }

  dimension: failed_truncated {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_truncated ;;
  }

  dimension: failed_over_budget {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_over_budget ;;
  }
}

view: differences_columns {
  extension: required
  derived_table: {
    sql:
      WITH comparisons AS (
      SELECT * FROM `@{dataset}.comparisons` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
        ON b.run_id = r.run_id AND b.started_at = r.started_at AND b.config_id = d.baseline
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: slice {
    type: string
    sql: ${TABLE}.slice ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: baseline {
    type: string
    sql: ${TABLE}.baseline ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: p_value {
    type: number
    hidden: yes
    sql: ${TABLE}.p_value ;;
  }

  dimension: p_method {
    type: string
    sql: ${TABLE}.p_method ;;
  }

  dimension: p_adjusted {
    type: number
    hidden: yes
    sql: ${TABLE}.p_adjusted ;;
  }

  dimension: q_value {
    type: number
    hidden: yes
    sql: ${TABLE}.q_value ;;
  }

  dimension: t_p_value {
    type: number
    hidden: yes
    sql: ${TABLE}.t_p_value ;;
  }

  dimension: effect_size {
    type: number
    hidden: yes
    sql: ${TABLE}.effect_size ;;
  }

  dimension: detectable {
    type: number
    hidden: yes
    sql: ${TABLE}.detectable ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: unpaired {
    type: number
    hidden: yes
    sql: ${TABLE}.unpaired ;;
  }

  dimension: wins {
    type: number
    hidden: yes
    sql: ${TABLE}.wins ;;
  }

  dimension: ties {
    type: number
    hidden: yes
    sql: ${TABLE}.ties ;;
  }

  dimension: losses {
    type: number
    hidden: yes
    sql: ${TABLE}.losses ;;
  }

  dimension: clusters {
    type: number
    hidden: yes
    sql: ${TABLE}.clusters ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: lower_is_better {
    type: yesno
    sql: ${TABLE}.lower_is_better ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: baseline_id {
    type: string
    sql: ${TABLE}.baseline_id ;;
  }
}

view: failure_kinds_columns {
  extension: required
  derived_table: {
    sql:
      WITH configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      failures AS (
      SELECT * FROM `@{dataset}.failures` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      ),
      unanswered AS (
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
          f.config_id = c.derived_from OR f.config_id IN UNNEST(c.parts)
        )
      )
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
        caller_id
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: caller {
    type: string
    sql: ${TABLE}.caller ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: kind {
    type: string
    sql: ${TABLE}.kind ;;
  }

  dimension: failures {
    type: number
    hidden: yes
    sql: ${TABLE}.failures ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: attempts {
    type: number
    hidden: yes
    sql: ${TABLE}.attempts ;;
  }

  dimension: example {
    type: string
    sql: ${TABLE}.example ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: caller_id {
    type: string
    sql: ${TABLE}.caller_id ;;
  }
}

view: judge_quality_columns {
  extension: required
  derived_table: {
    sql:
      SELECT * FROM `@{dataset}.judge_quality` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: step {
    type: string
    sql: ${TABLE}.step ;;
  }

  dimension: judge {
    type: string
    sql: ${TABLE}.judge ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: model_versions {
    type: string
    hidden: yes
    sql: ${TABLE}.model_versions ;;
  }

  dimension: prompt_hash {
    type: string
    sql: ${TABLE}.prompt_hash ;;
  }

  dimension: items {
    type: number
    hidden: yes
    sql: ${TABLE}.items ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: repeated {
    type: number
    hidden: yes
    sql: ${TABLE}.repeated ;;
  }

  dimension: compared {
    type: number
    hidden: yes
    sql: ${TABLE}.compared ;;
  }

  dimension: agreement {
    type: number
    hidden: yes
    sql: ${TABLE}.agreement ;;
  }

  dimension: within_sd {
    type: number
    hidden: yes
    sql: ${TABLE}.within_sd ;;
  }

  dimension: sentinels {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinels ;;
  }

  dimension: sentinels_right {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinels_right ;;
  }

  dimension: sentinel_accuracy {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinel_accuracy ;;
  }

  dimension: sentinel_low {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinel_low ;;
  }

  dimension: sentinel_high {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinel_high ;;
  }

  dimension: sentinel_groups {
    type: string
    hidden: yes
    sql: ${TABLE}.sentinel_groups ;;
  }

  dimension: drift_since {
    type: string
    sql: ${TABLE}.drift_since ;;
  }

  dimension: drift_p_value {
    type: number
    hidden: yes
    sql: ${TABLE}.drift_p_value ;;
  }

  dimension: input_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.input_tokens ;;
  }

  dimension: cached_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.cached_tokens ;;
  }

  dimension: output_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.output_tokens ;;
  }

  dimension: cost {
    type: number
    hidden: yes
    sql: ${TABLE}.cost ;;
  }
}

view: leaderboard_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
          IF(
            COALESCE(
              lower_is_better,
              REGEXP_CONTAINS(
                metric,
                '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\\b'
              )
            ),
            -1,
            1
          ) AS sign
        FROM configuration_metrics
        WHERE
          slice = 'all'
      ) AS m
        ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: joint_low {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_low ;;
  }

  dimension: joint_high {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_high ;;
  }

  dimension: may_be_best {
    type: yesno
    sql: ${TABLE}.may_be_best ;;
  }

  dimension: panel {
    type: string
    sql: ${TABLE}.panel ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    sql: ${TABLE}.highest ;;
  }

  dimension: tie_lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_lowest ;;
  }

  dimension: tie_highest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_highest ;;
  }

  dimension: equal_to {
    type: string
    sql: ${TABLE}.equal_to ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: sign {
    type: number
    hidden: yes
    sql: ${TABLE}.sign ;;
  }
}

view: monitoring_columns {
  extension: required
  derived_table: {
    sql:
      WITH configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      monitor AS (
      SELECT * FROM `@{dataset}.monitor` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
        ON c.run_id = m.run_id AND c.started_at = m.started_at AND c.config_id = m.config_id
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: mode {
    type: string
    sql: ${TABLE}.mode ;;
  }

  dimension: state {
    type: string
    sql: ${TABLE}.state ;;
  }

  dimension: alarm {
    type: yesno
    sql: ${TABLE}.alarm ;;
  }

  dimension: change {
    type: number
    hidden: yes
    sql: ${TABLE}.change ;;
  }

  dimension: low {
    type: number
    hidden: yes
    sql: ${TABLE}.low ;;
  }

  dimension: high {
    type: number
    hidden: yes
    sql: ${TABLE}.high ;;
  }

  dimension: lowest_high {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest_high ;;
  }

  dimension: highest_low {
    type: number
    hidden: yes
    sql: ${TABLE}.highest_low ;;
  }

  dimension: nights {
    type: number
    hidden: yes
    sql: ${TABLE}.nights ;;
  }

  dimension_group: since {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.since ;;
  }

  dimension: tolerance {
    type: number
    hidden: yes
    sql: ${TABLE}.tolerance ;;
  }

  dimension: baseline_run {
    type: string
    sql: ${TABLE}.baseline_run ;;
  }

  dimension: baseline_mean {
    type: number
    hidden: yes
    sql: ${TABLE}.baseline_mean ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: skipped {
    type: number
    hidden: yes
    sql: ${TABLE}.skipped ;;
  }

  dimension: quarter {
    type: number
    hidden: yes
    sql: ${TABLE}.quarter ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: query_changes_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      query_metrics AS (
      SELECT * FROM `@{dataset}.query_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      ),
      per_query AS (
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
      CROSS JOIN UNNEST(q.metrics) AS item
      ),
      trend AS (
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
          IF(
            COALESCE(
              m.lower_is_better,
              REGEXP_CONTAINS(
                m.metric,
                '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\\b'
              )
            ),
            -1,
            1
          ) AS sign,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_parameters
          ) AS previous_run_id,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_parameters
          ) AS previous_started_at,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_parameters
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
          ORDER BY r.started_at, r.run_id
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), of_parameters AS (
          PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric
          ORDER BY r.started_at, r.run_id
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
      ) AS p
      LEFT JOIN configuration_metrics AS b
        ON b.run_id = p.previous_run_id
        AND b.started_at = p.previous_started_at
        AND b.config_id = p.previous_config_id
        AND b.slice = p.slice
        AND b.metric = p.metric
      )
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
        AND w.metric = t.metric
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: previous_status {
    type: string
    sql: ${TABLE}.previous_status ;;
  }

  dimension: value {
    type: number
    hidden: yes
    sql: ${TABLE}.value ;;
  }

  dimension: previous_value {
    type: number
    hidden: yes
    sql: ${TABLE}.previous_value ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: query_metrics_columns {
  extension: required
  derived_table: {
    sql:
      SELECT * FROM `@{dataset}.query_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  dimension: metrics {
    type: string
    hidden: yes
    sql: ${TABLE}.metrics ;;
  }
}

view: rankings_columns {
  extension: required
  derived_table: {
    sql:
      SELECT * FROM `@{dataset}.rankings` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: documents {
    type: string
    hidden: yes
    sql: ${TABLE}.documents ;;
  }
}

view: regressions_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      query_metrics AS (
      SELECT * FROM `@{dataset}.query_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      ),
      per_query AS (
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
      CROSS JOIN UNNEST(q.metrics) AS item
      ),
      trend AS (
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
          IF(
            COALESCE(
              m.lower_is_better,
              REGEXP_CONTAINS(
                m.metric,
                '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\\b'
              )
            ),
            -1,
            1
          ) AS sign,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_parameters
          ) AS previous_run_id,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_parameters
          ) AS previous_started_at,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_parameters
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
          ORDER BY r.started_at, r.run_id
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), of_parameters AS (
          PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric
          ORDER BY r.started_at, r.run_id
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
      ) AS p
      LEFT JOIN configuration_metrics AS b
        ON b.run_id = p.previous_run_id
        AND b.started_at = p.previous_started_at
        AND b.config_id = p.previous_config_id
        AND b.slice = p.slice
        AND b.metric = p.metric
      ),
      query_changes AS (
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
        AND w.metric = t.metric
      )
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
        IF(queries < 20, NULL, difference - 1.96 * std_error) AS ci_low,
        IF(queries < 20, NULL, difference + 1.96 * std_error) AS ci_high,
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
          AVG(IF(q.difference IS NULL, NULL, q.value)) AS mean,
          AVG(IF(q.difference IS NULL, NULL, q.previous_value)) AS previous_mean,
          AVG(q.difference) AS difference,
          SAFE_DIVIDE(STDDEV_SAMP(q.difference), SQRT(COUNT(q.difference))) AS std_error,
          COUNT(q.difference) AS queries,
          COUNT(q.query_id) - COUNT(q.difference) AS unpaired,
          COUNT(IF(t.sign * q.difference > 0, 1, NULL)) AS better,
          COUNT(IF(t.sign * q.difference < 0, 1, NULL)) AS worse
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
      ) AS changes
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: previous_mean {
    type: number
    hidden: yes
    sql: ${TABLE}.previous_mean ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: verdict {
    type: string
    sql: ${TABLE}.verdict ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: unpaired {
    type: number
    hidden: yes
    sql: ${TABLE}.unpaired ;;
  }

  dimension: better {
    type: number
    hidden: yes
    sql: ${TABLE}.better ;;
  }

  dimension: worse {
    type: number
    hidden: yes
    sql: ${TABLE}.worse ;;
  }

  dimension: same {
    type: number
    hidden: yes
    sql: ${TABLE}.same ;;
  }

  dimension: parameters_changed {
    type: yesno
    sql: ${TABLE}.parameters_changed ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: run_choices_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
        ON m.run_id = r.run_id AND m.started_at = r.started_at
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: has_values {
    type: yesno
    sql: ${TABLE}.has_values ;;
  }

  dimension: is_last_good {
    type: yesno
    sql: ${TABLE}.is_last_good ;;
  }
}

view: run_history_columns {
  extension: required
  sql_table_name: `@{dataset}.run_history` ;;

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension_group: finished {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.finished_at ;;
  }

  dimension: state {
    type: string
    sql: ${TABLE}.state ;;
  }

  dimension: dataset_fingerprint {
    type: string
    sql: ${TABLE}.dataset_fingerprint ;;
  }

  dimension: duration_s {
    type: number
    hidden: yes
    sql: ${TABLE}.duration_s ;;
  }

  dimension: calls {
    type: number
    hidden: yes
    sql: ${TABLE}.calls ;;
  }

  dimension: ledger_hits {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_hits ;;
  }

  dimension: failures {
    type: number
    hidden: yes
    sql: ${TABLE}.failures ;;
  }

  dimension: ledger_share {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_share ;;
  }

  dimension: failures_per_call {
    type: number
    hidden: yes
    sql: ${TABLE}.failures_per_call ;;
  }

  dimension: warnings {
    type: number
    hidden: yes
    sql: ${TABLE}.warnings ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }
}

view: side_by_side_columns {
  extension: required
  derived_table: {
    sql:
      WITH comparisons AS (
      SELECT * FROM `@{dataset}.comparisons` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      query_metrics AS (
      SELECT * FROM `@{dataset}.query_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      ),
      differences AS (
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
        ON b.run_id = r.run_id AND b.started_at = r.started_at AND b.config_id = d.baseline
      ),
      per_query AS (
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
      CROSS JOIN UNNEST(q.metrics) AS item
      )
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
        d.slice = 'all'
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: baseline {
    type: string
    sql: ${TABLE}.baseline ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: baseline_status {
    type: string
    sql: ${TABLE}.baseline_status ;;
  }

  dimension: value {
    type: number
    hidden: yes
    sql: ${TABLE}.value ;;
  }

  dimension: baseline_value {
    type: number
    hidden: yes
    sql: ${TABLE}.baseline_value ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: baseline_id {
    type: string
    sql: ${TABLE}.baseline_id ;;
  }
}

view: slice_leaderboard_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
      SELECT
        r.run_id,
        r.experiment,
        m.started_at,
        r.is_latest,
        m.slice,
        REPLACE(REGEXP_REPLACE(m.parted, CONCAT('=[^', CHR(  31), ']*'), ''), CHR(  31), '×') AS attribute,
        REPLACE(
          REGEXP_REPLACE(m.parted, CONCAT('(^|', CHR(  31), ')[^=', CHR(  31), ']*='), '\\1'),
          CHR(  31),
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
          REGEXP_REPLACE(slice, '×([^×=]*)=', CONCAT(CHR(  31), '\\1=')) AS parted,
          IF(
            COALESCE(
              lower_is_better,
              REGEXP_CONTAINS(
                metric,
                '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\\b'
              )
            ),
            -1,
            1
          ) AS sign
        FROM configuration_metrics
        WHERE
          slice <> 'all'
      ) AS m
        ON m.run_id = r.run_id AND m.started_at = r.started_at AND m.config_id = c.config_id
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: slice {
    type: string
    sql: ${TABLE}.slice ;;
  }

  dimension: attribute {
    type: string
    sql: ${TABLE}.attribute ;;
  }

  dimension: value {
    type: string
    sql: ${TABLE}.value ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: joint_low {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_low ;;
  }

  dimension: joint_high {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_high ;;
  }

  dimension: may_be_best {
    type: yesno
    sql: ${TABLE}.may_be_best ;;
  }

  dimension: panel {
    type: string
    sql: ${TABLE}.panel ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    sql: ${TABLE}.highest ;;
  }

  dimension: tie_lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_lowest ;;
  }

  dimension: tie_highest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_highest ;;
  }

  dimension: equal_to {
    type: string
    sql: ${TABLE}.equal_to ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: sign {
    type: number
    hidden: yes
    sql: ${TABLE}.sign ;;
  }
}

view: trend_columns {
  extension: required
  derived_table: {
    sql:
      WITH configuration_metrics AS (
      SELECT * FROM `@{dataset}.configuration_metrics` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
          IF(
            COALESCE(
              m.lower_is_better,
              REGEXP_CONTAINS(
                m.metric,
                '^(Hallucination|NoiseSensitivity|Steps|Retrievals|Tokens|InputTokens|OutputTokens|Cost|Seconds)\\b'
              )
            ),
            -1,
            1
          ) AS sign,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.run_id) IGNORE NULLS) OVER of_parameters
          ) AS previous_run_id,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.started_at) IGNORE NULLS) OVER of_parameters
          ) AS previous_started_at,
          COALESCE(
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_name,
            LAST_VALUE(IF(m.mean IS NULL, NULL, m.config_id) IGNORE NULLS) OVER of_parameters
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
          ORDER BY r.started_at, r.run_id
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), of_parameters AS (
          PARTITION BY r.experiment, r.dataset_fingerprint, c.config_id, m.metric
          ORDER BY r.started_at, r.run_id
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
      ) AS p
      LEFT JOIN configuration_metrics AS b
        ON b.run_id = p.previous_run_id
        AND b.started_at = p.previous_started_at
        AND b.config_id = p.previous_config_id
        AND b.slice = p.slice
        AND b.metric = p.metric
    ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension: dataset_fingerprint {
    type: string
    sql: ${TABLE}.dataset_fingerprint ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    sql: ${TABLE}.highest ;;
  }

  dimension: sign {
    type: number
    hidden: yes
    sql: ${TABLE}.sign ;;
  }

  dimension: previous_mean {
    type: number
    hidden: yes
    sql: ${TABLE}.previous_mean ;;
  }

  dimension: change {
    type: number
    hidden: yes
    sql: ${TABLE}.change ;;
  }

  dimension: parameters_changed {
    type: yesno
    sql: ${TABLE}.parameters_changed ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: unanswered_columns {
  extension: required
  derived_table: {
    sql:
      WITH configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      failures AS (
      SELECT * FROM `@{dataset}.failures` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
          f.config_id = c.derived_from OR f.config_id IN UNNEST(c.parts)
        )
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: caller {
    type: string
    sql: ${TABLE}.caller ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: kind {
    type: string
    sql: ${TABLE}.kind ;;
  }

  dimension: attempts {
    type: number
    hidden: yes
    sql: ${TABLE}.attempts ;;
  }

  dimension: message {
    type: string
    sql: ${TABLE}.message ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: caller_id {
    type: string
    sql: ${TABLE}.caller_id ;;
  }

  dimension: derived_from {
    type: string
    sql: ${TABLE}.derived_from ;;
  }
}

view: verdicts_of_configuration_columns {
  extension: required
  derived_table: {
    sql:
      WITH answers AS (
      SELECT * FROM `@{dataset}.answers` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      claims AS (
      SELECT * FROM `@{dataset}.claims` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      configurations AS (
      SELECT * FROM `@{dataset}.configurations` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      runs AS (
      SELECT * FROM `@{dataset}.runs`
      ),
      texts AS (
      SELECT * FROM `@{dataset}.texts` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      verdicts AS (
      SELECT * FROM `@{dataset}.verdicts` WHERE started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
      ),
      run_history AS (
      SELECT
        run_id,
        experiment,
        started_at,
        finished_at,
        state,
        dataset_fingerprint,
        TIMESTAMP_DIFF(finished_at, started_at, MICROSECOND) / 1000000 AS duration_s,
        calls,
        ledger_hits,
        failures,
        SAFE_DIVIDE(ledger_hits, calls + ledger_hits) AS ledger_share,
        SAFE_DIVIDE(failures, calls) AS failures_per_call,
        ARRAY_LENGTH(warnings) AS warnings,
        ROW_NUMBER() OVER (PARTITION BY experiment ORDER BY started_at DESC, run_id DESC) = 1 AS is_latest
      FROM runs
      )
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
            context.doc_id IN UNNEST(citations) AS is_cited
          FROM answers
          CROSS JOIN UNNEST(contexts) AS context
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
        CROSS JOIN UNNEST(['answer', 'reference', 'whole']) AS owner
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
        AND m.sample = IF(v.is_repeat, 0, v.sample)
      LEFT JOIN texts AS n
        ON n.run_id = v.run_id AND n.started_at = v.started_at AND n.text_hash = v.left_hash
      LEFT JOIN texts AS t
        ON t.run_id = v.run_id AND t.started_at = v.started_at AND t.text_hash = v.right_hash
      WHERE
        a.owner = 'whole' OR NOT m.text IS NULL
    ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: answer_sample {
    type: number
    hidden: yes
    sql: ${TABLE}.answer_sample ;;
  }

  dimension: step {
    type: string
    sql: ${TABLE}.step ;;
  }

  dimension: owner {
    type: string
    sql: ${TABLE}.owner ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: claim {
    type: string
    sql: ${TABLE}.claim ;;
  }

  dimension: quote_start {
    type: number
    hidden: yes
    sql: ${TABLE}.quote_start ;;
  }

  dimension: quote_end {
    type: number
    hidden: yes
    sql: ${TABLE}.quote_end ;;
  }

  dimension: evidence {
    type: string
    sql: ${TABLE}.evidence ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: doc_id {
    type: string
    sql: ${TABLE}.doc_id ;;
  }

  dimension: is_cited {
    type: yesno
    sql: ${TABLE}.is_cited ;;
  }

  dimension: evidence_text {
    type: string
    sql: ${TABLE}.evidence_text ;;
  }

  dimension: verdict {
    type: string
    sql: ${TABLE}.verdict ;;
  }

  dimension: grade {
    type: number
    hidden: yes
    sql: ${TABLE}.grade ;;
  }

  dimension: reason {
    type: string
    sql: ${TABLE}.reason ;;
  }

  dimension: sample {
    type: number
    hidden: yes
    sql: ${TABLE}.sample ;;
  }

  dimension: is_repeat {
    type: yesno
    sql: ${TABLE}.is_repeat ;;
  }

  dimension: judge {
    type: string
    sql: ${TABLE}.judge ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: prompt_hash {
    type: string
    sql: ${TABLE}.prompt_hash ;;
  }

  dimension: item_id {
    type: string
    sql: ${TABLE}.item_id ;;
  }

  dimension: evidence_hash {
    type: string
    sql: ${TABLE}.evidence_hash ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}
