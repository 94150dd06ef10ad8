# A row for every query and configuration, with its metrics and attributes nested. It includes unfinished runs: always join runs.
view: queries {
  sql_table_name: `@{dataset}.query_metrics` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id) ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
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

  dimension: query_id {
    type: string
    link: {
      label: "The story of this query"
      url: "/dashboards/rankbeam::query?Query={{ value | url_encode }}&Experiment={{ queries.experiment._value | url_encode }}&Run={{ queries.run_id._value | url_encode }}"
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

  measure: queries {
    type: count_distinct
    sql: ${query_id} ;;
    drill_fields: [query_id, text, status]
  }

  measure: answers {
    type: count
    description: "A query counts once for each configuration"
  }

  measure: failed {
    type: count
    filters: [status: "failed"]
  }

  measure: empty {
    type: count
    filters: [status: "empty"]
  }
}
