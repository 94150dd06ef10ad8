view: differences {
  sql_table_name: `@{dataset}.differences` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.baseline_id, '|', ${TABLE}.slice, '|', ${TABLE}.metric) ;;
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

  dimension: baseline {
    type: string
    sql: ${TABLE}.baseline ;;
  }

  dimension: baseline_id {
    type: string
    sql: ${TABLE}.baseline_id ;;
  }

  dimension: position {
    type: number
    sql: ${TABLE}.position ;;
  }

  dimension: slice {
    type: string
    sql: ${TABLE}.slice ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
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

  dimension: clusters {
    type: number
    hidden: yes
    sql: ${TABLE}.clusters ;;
  }

  dimension: p_method {
    type: string
    hidden: yes
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
    description: "Weighted by queries; empty over several metrics or slices"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 AND COUNT(DISTINCT ${slice}) = 1 THEN ${score_sum} / NULLIF(${scored_queries}, 0) END ;;
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

  measure: p {
    type: number
    description: "Of the paired randomisation test; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${p_value}) END ;;
  }

  measure: p_holm {
    type: number
    description: "Corrected by Holm over all comparisons of the metric; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${p_adjusted}) END ;;
  }

  measure: q {
    type: number
    description: "Corrected by Benjamini and Hochberg; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${q_value}) END ;;
  }

  measure: p_of_t_test {
    type: number
    description: "Of the paired t test; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${t_p_value}) END ;;
  }

  measure: effect {
    type: number
    description: "The difference over the standard deviation of the differences; empty unless the row of the result is one row of the view"
    value_format: "0.00"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${effect_size}) END ;;
  }

  measure: detectable_difference {
    type: number
    description: "The smallest difference that so many queries would show; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${detectable}) END ;;
  }

  measure: win_count {
    type: number
    description: "Queries that the configuration wins; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${wins}) END ;;
  }

  measure: tie_count {
    type: number
    description: "Queries without a difference; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${ties}) END ;;
  }

  measure: loss_count {
    type: number
    description: "Queries that the configuration loses; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${losses}) END ;;
  }

  measure: query_count {
    type: number
    description: "Queries that both have; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${queries}) END ;;
  }

  measure: unpaired_count {
    type: number
    description: "Queries that only one has; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${unpaired}) END ;;
  }
}
