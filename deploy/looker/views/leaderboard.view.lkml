view: leaderboard {
  sql_table_name: `@{dataset}.leaderboard` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.metric) ;;
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

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: position {
    type: number
    description: "Its place in the experiment"
    sql: ${TABLE}.position ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: rank {
    type: number
    description: "Among the configurations of one dialect"
    sql: ${TABLE}.rank ;;
  }

  dimension: may_be_best {
    type: string
    description: "no: significantly worse than the best one; empty: not known, or without a value"
    sql: CASE WHEN ${TABLE}.may_be_best THEN 'yes' WHEN NOT ${TABLE}.may_be_best THEN 'no' END ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.std_error ;;
  }

  dimension: joint_low {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.joint_low ;;
  }

  dimension: joint_high {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.joint_high ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.highest ;;
  }

  dimension: tie_lowest {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.tie_lowest ;;
  }

  dimension: tie_highest {
    type: number
    hidden: yes
    value_format: "0.0000"
    sql: ${TABLE}.tie_highest ;;
  }

  dimension: equal_to {
    type: string
    description: "The first configuration whose values are equal at every query; null if there is none before this one."
    sql: ${TABLE}.equal_to ;;
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

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: panel {
    type: string
    description: "Metrics of one panel share a status: those of rankings (retrieval); every judged metric has its own"
    sql: ${TABLE}.panel ;;
  }

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
