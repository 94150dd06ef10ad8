# The values of a query, unnested from queries.metrics.
view: query_values {
  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${queries.key}, '|', ${TABLE}.metric) ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: value {
    type: number
    value_format: "0.0000"
    sql: ${TABLE}.value ;;
  }

  dimension: status {
    type: string
    description: "Of a judged metric; those of rankings have the status of the query"
    sql: COALESCE(${TABLE}.status, ${queries.status}) ;;
  }

  dimension: reason {
    type: string
    description: "Why there is no value"
    sql: ${TABLE}.reason ;;
  }

  dimension: tie_lowest {
    type: number
    value_format: "0.0000"
    sql: ${TABLE}.tie_lowest ;;
  }

  dimension: tie_highest {
    type: number
    value_format: "0.0000"
    sql: ${TABLE}.tie_highest ;;
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
}
