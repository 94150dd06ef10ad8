view: trend {
  extends: [trend_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.metric) ;;
  }

  dimension: parameters_changed { description: "Since the previous run, under the same name" }
  dimension: previous_run_id { description: "The last earlier run with a value" }
  dimension: mean { value_format: "0.0000" }
  dimension: ci_low { value_format: "0.0000" }
  dimension: ci_high { value_format: "0.0000" }
  dimension: lowest { value_format: "0.0000" }
  dimension: highest { value_format: "0.0000" }

  measure: score_sum {
    type: sum
    hidden: yes
    sql: ${mean} * ${queries} ;;
  }

  measure: scored_queries {
    type: sum
    hidden: yes
    sql: IF(${mean} IS NULL, 0, ${queries}) ;;
  }

  measure: weighted_mean {
    type: number
    description: "Weighted by queries; empty over several metrics"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 THEN ${score_sum} / NULLIF(${scored_queries}, 0) END ;;
  }

  measure: interval_low {
    type: number
    description: "Low end of the interval of the mean; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${ci_low}) END ;;
  }

  measure: interval_high {
    type: number
    description: "High end of the interval of the mean; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${ci_high}) END ;;
  }

  measure: standard_error {
    type: number
    description: "Of the mean; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${std_error}) END ;;
  }

  measure: lowest_mean {
    type: number
    description: "The mean if every failed query scored as low as can be; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${lowest}) END ;;
  }

  measure: highest_mean {
    type: number
    description: "The mean if every failed query scored as high as can be; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${highest}) END ;;
  }

  measure: mean_before {
    type: number
    description: "In the last earlier run with a value, over the same dataset; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${previous_mean}) END ;;
  }

  measure: change_of_mean {
    type: number
    description: "Since the last earlier run with a value, over the same dataset; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${change}) END ;;
  }

  measure: query_count {
    type: number
    description: "Queries that were scored; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${queries}) END ;;
  }

  measure: empty_count {
    type: number
    description: "Queries without any result, scored 0; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${empty}) END ;;
  }

  measure: failed_count {
    type: number
    description: "Queries that were not scored, because the call failed; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed}) END ;;
  }

  measure: missing_count {
    type: number
    description: "Queries that the dialect leaves out; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${missing}) END ;;
  }

  measure: undefined_count {
    type: number
    description: "Queries whose value does not exist; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${undefined}) END ;;
  }
}
