view: side_by_side {
  sql_table_name: `@{dataset}.side_by_side` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.baseline_id, '|', ${TABLE}.query_id, '|', ${TABLE}.metric) ;;
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

  dimension: baseline {
    type: string
    sql: ${TABLE}.baseline ;;
  }

  dimension: baseline_id {
    type: string
    sql: ${TABLE}.baseline_id ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: query_id {
    type: string
    link: {
      label: "The story of this query"
      url: "/dashboards/rankbeam::query?Query={{ value | url_encode }}&Experiment={{ side_by_side.experiment._value | url_encode }}&Run={{ side_by_side.run_id._value | url_encode }}"
    }
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
    value_format: "0.0000"
    sql: ${TABLE}.value ;;
  }

  dimension: baseline_value {
    type: number
    value_format: "0.0000"
    sql: ${TABLE}.baseline_value ;;
  }

  dimension: difference {
    type: number
    value_format: "0.0000"
    sql: ${TABLE}.difference ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  measure: value_of_all {
    type: average
    hidden: yes
    sql: ${value} ;;
  }

  measure: average_value {
    type: number
    description: "Over queries; empty over several metrics"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 THEN ${value_of_all} END ;;
  }

  measure: baseline_value_of_all {
    type: average
    hidden: yes
    sql: ${baseline_value} ;;
  }

  measure: average_baseline_value {
    type: number
    description: "Over queries; empty over several metrics"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 THEN ${baseline_value_of_all} END ;;
  }

  measure: difference_of_all {
    type: average
    hidden: yes
    sql: ${difference} ;;
  }

  measure: average_difference {
    type: number
    description: "Over queries that both have; empty over several metrics"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 THEN ${difference_of_all} END ;;
  }

  measure: queries {
    type: count_distinct
    sql: ${query_id} ;;
    drill_fields: [query_id, text]
  }

  measure: better {
    type: count
    filters: [difference: ">0"]
  }

  measure: worse {
    type: count
    filters: [difference: "<0"]
  }

  measure: without_difference {
    type: count
    filters: [difference: "0"]
  }
}
