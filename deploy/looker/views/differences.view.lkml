view: differences {
  extends: [differences_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.baseline_id, '|', ${TABLE}.slice, '|', ${TABLE}.metric) ;;
  }

  dimension: position { hidden: no }
  dimension: p_method { hidden: yes }

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
