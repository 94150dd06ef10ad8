view: query_changes {
  extends: [query_changes_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', ${TABLE}.metric) ;;
  }

  dimension: query_id {
    link: {
      label: "The story of this query"
      url: "/dashboards/rankbeam::query?Query={{ value | url_encode }}&Experiment={{ query_changes.experiment._value | url_encode }}&Run={{ query_changes.run_id._value | url_encode }}"
    }
  }

  dimension: value {
    value_format: "0.0000"
    hidden: no
  }

  dimension: previous_value {
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

  measure: previous_value_of_all {
    type: average
    hidden: yes
    sql: ${previous_value} ;;
  }

  measure: average_previous_value {
    type: number
    description: "Over queries; empty over several metrics"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${metric}) = 1 THEN ${previous_value_of_all} END ;;
  }

  measure: difference_of_all {
    type: average
    hidden: yes
    sql: ${difference} ;;
  }

  measure: average_difference {
    type: number
    description: "Over queries that both runs have; empty over several metrics"
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
