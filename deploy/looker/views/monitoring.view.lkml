view: monitoring {
  extends: [monitoring_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.metric) ;;
  }

  dimension: mode { description: "fixed: the queries of the baseline run; fresh: new queries each night" }
  dimension: alarm { description: "A whole interval is beyond the tolerance" }

  dimension_group: since { timeframes: [raw, date] }

  measure: change_since_baseline {
    type: number
    description: "Mean change since the baseline run; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${change}) END ;;
  }

  measure: interval_low {
    type: number
    description: "Lower end of its interval; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${low}) END ;;
  }

  measure: interval_high {
    type: number
    description: "Upper end of its interval; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${high}) END ;;
  }

  measure: lowest_upper_end {
    type: number
    description: "Lowest upper end of all intervals; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${lowest_high}) END ;;
  }

  measure: highest_lower_end {
    type: number
    description: "Highest lower end of all intervals; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${highest_low}) END ;;
  }

  measure: mean_of_baseline {
    type: number
    description: "Mean of the baseline run; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${baseline_mean}) END ;;
  }

  measure: tolerated_change {
    type: number
    description: "Tolerated change; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${tolerance}) END ;;
  }

  measure: night_count {
    type: number
    description: "Nights of the interval; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${nights}) END ;;
  }

  measure: query_count {
    type: number
    description: "Queries of the latest night; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${queries}) END ;;
  }

  measure: skipped_count {
    type: number
    description: "Nights that do not count; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${skipped}) END ;;
  }

  measure: quarter_number {
    type: number
    description: "Number of the quarter of 90 nights; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${quarter}) END ;;
  }
}
