view: monitoring {
  sql_table_name: `@{dataset}.monitoring` ;;

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

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: mode {
    type: string
    description: "fixed: the queries of the baseline run; fresh: new queries each night"
    sql: ${TABLE}.mode ;;
  }

  dimension: state {
    type: string
    sql: ${TABLE}.state ;;
  }

  dimension: alarm {
    type: yesno
    description: "A whole interval is beyond the tolerance"
    sql: ${TABLE}.alarm ;;
  }

  dimension: baseline_run {
    type: string
    sql: ${TABLE}.baseline_run ;;
  }

  dimension_group: since {
    type: time
    timeframes: [raw, date]
    datatype: timestamp
    sql: ${TABLE}.since ;;
  }

  measure: change {
    type: number
    description: "Mean change since the baseline run; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.change) END ;;
  }

  measure: low {
    type: number
    description: "Lower end of its interval; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.low) END ;;
  }

  measure: high {
    type: number
    description: "Upper end of its interval; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.high) END ;;
  }

  measure: lowest_high {
    type: number
    description: "Lowest upper end of all intervals; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.lowest_high) END ;;
  }

  measure: highest_low {
    type: number
    description: "Highest lower end of all intervals; empty unless the row of the result is one row of the view"
    value_format: "+0.0000;-0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.highest_low) END ;;
  }

  measure: baseline_mean {
    type: number
    description: "Mean of the baseline run; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.baseline_mean) END ;;
  }

  measure: tolerance {
    type: number
    description: "Tolerated change; empty unless the row of the result is one row of the view"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.tolerance) END ;;
  }

  measure: nights {
    type: number
    description: "Nights of the interval; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.nights) END ;;
  }

  measure: queries {
    type: number
    description: "Queries of the latest night; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.queries) END ;;
  }

  measure: skipped {
    type: number
    description: "Nights that do not count; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.skipped) END ;;
  }

  measure: quarter {
    type: number
    description: "Number of the quarter of 90 nights; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${TABLE}.quarter) END ;;
  }
}
