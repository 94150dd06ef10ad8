view: side_by_side {
  extends: [side_by_side_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.baseline_id, '|', ${TABLE}.query_id, '|', ${TABLE}.metric) ;;
  }

  dimension: query_id {
    link: {
      label: "The story of this query"
      url: "/dashboards/rankbeam::query?Query={{ value | url_encode }}&Experiment={{ side_by_side.experiment._value | url_encode }}&Run={{ side_by_side.run_id._value | url_encode }}"
    }
  }

  dimension: value {
    value_format: "0.0000"
    hidden: no
  }

  dimension: baseline_value {
    value_format: "0.0000"
    hidden: no
  }

  dimension: difference {
    value_format: "0.0000"
    hidden: no
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
