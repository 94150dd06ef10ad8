# A row for every query and configuration, with its metrics and attributes nested. It includes unfinished runs: always join runs.
view: queries {
  extends: [query_metrics_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id) ;;
  }

  dimension: query_id {
    link: {
      label: "The story of this query"
      url: "/dashboards/rankbeam::query?Query={{ value | url_encode }}&Experiment={{ queries.experiment._value | url_encode }}&Run={{ queries.run_id._value | url_encode }}"
    }
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
