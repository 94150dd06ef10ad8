view: leaderboard {
  extends: [leaderboard_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.metric) ;;
  }

  dimension: position {
    description: "Its place in the experiment"
    hidden: no
  }

  dimension: rank {
    description: "Among the configurations of one dialect"
    hidden: no
  }

  dimension: may_be_best {
    type: string
    description: "no: significantly worse than the best one; empty: not known, or without a value"
    sql: CASE WHEN ${TABLE}.may_be_best THEN 'yes' WHEN NOT ${TABLE}.may_be_best THEN 'no' END ;;
  }

  dimension: mean { value_format: "0.0000" }
  dimension: ci_low { value_format: "0.0000" }
  dimension: ci_high { value_format: "0.0000" }
  dimension: std_error { value_format: "0.0000" }
  dimension: joint_low { value_format: "0.0000" }
  dimension: joint_high { value_format: "0.0000" }
  dimension: lowest { value_format: "0.0000" }
  dimension: highest { value_format: "0.0000" }
  dimension: tie_lowest { value_format: "0.0000" }
  dimension: tie_highest { value_format: "0.0000" }
  dimension: equal_to { description: "The first configuration whose values are equal at every query; null if there is none before this one." }
  dimension: panel { description: "Metrics of one panel share a status: those of rankings (retrieval); every judged metric has its own" }

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

  measure: joint_interval_low {
    type: number
    description: "Low end of the interval that holds for all configurations at once; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${joint_low}) END ;;
  }

  measure: joint_interval_high {
    type: number
    description: "High end of the interval that holds for all configurations at once; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${joint_high}) END ;;
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

  measure: tie_lowest_mean {
    type: number
    description: "The mean if ties fell as badly as can be; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${tie_lowest}) END ;;
  }

  measure: tie_highest_mean {
    type: number
    description: "The mean if ties fell as well as can be; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${tie_highest}) END ;;
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

  measure: configurations {
    type: count_distinct
    sql: ${configuration} ;;
    drill_fields: [configuration]
  }
}
