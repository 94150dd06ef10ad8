view: regressions {
  extends: [regressions_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.metric) ;;
  }

  dimension: verdict { description: "better, worse, same, unclear, or nothing to compare: no query has a value in both runs" }
  dimension: parameters_changed { description: "Under the same name" }

  measure: score_sum {
    type: sum
    hidden: yes
    sql: ${difference} * ${queries} ;;
  }

  measure: scored_queries {
    type: sum
    hidden: yes
    sql: IF(${difference} IS NULL, 0, ${queries}) ;;
  }

  measure: weighted_difference {
    type: number
    description: "Weighted by queries; empty over several metrics"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 THEN ${score_sum} / NULLIF(${scored_queries}, 0) END ;;
  }

  measure: mean_now {
    type: number
    description: "Over queries that both runs have; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${mean}) END ;;
  }

  measure: mean_before {
    type: number
    description: "Over queries that both runs have; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${previous_mean}) END ;;
  }

  measure: interval_low {
    type: number
    description: "Low end of the interval of the difference; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${ci_low}) END ;;
  }

  measure: interval_high {
    type: number
    description: "High end of the interval of the difference; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${ci_high}) END ;;
  }

  measure: standard_error {
    type: number
    description: "Of the difference; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${std_error}) END ;;
  }

  measure: better_count {
    type: number
    description: "Queries that got better; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${better}) END ;;
  }

  measure: worse_count {
    type: number
    description: "Queries that got worse; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${worse}) END ;;
  }

  measure: same_count {
    type: number
    description: "Queries without a change; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${same}) END ;;
  }

  measure: query_count {
    type: number
    description: "Queries that both runs have; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${queries}) END ;;
  }

  measure: unpaired_count {
    type: number
    description: "Queries that only one has; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${unpaired}) END ;;
  }

  measure: regressions {
    type: count
    filters: [verdict: "worse"]
    drill_fields: [experiment, configuration, metric, previous_run_id]
  }

  measure: not_compared {
    type: count
    filters: [verdict: "nothing to compare"]
    drill_fields: [experiment, configuration, metric]
  }
}
