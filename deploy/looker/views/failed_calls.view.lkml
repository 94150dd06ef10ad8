# Join it to queries, which are of finished runs.
view: failed_calls {
  sql_table_name: `@{dataset}.failures` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', ${TABLE}.stage, '|', ${TABLE}.kind) ;;
  }

  dimension: run_id {
    type: string
    hidden: yes
    sql: ${TABLE}.run_id ;;
  }

  dimension: config_id {
    type: string
    hidden: yes
    sql: ${TABLE}.config_id ;;
  }

  dimension: query_id {
    type: string
    hidden: yes
    sql: ${TABLE}.query_id ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: kind {
    type: string
    sql: ${TABLE}.kind ;;
  }

  dimension: attempts {
    type: number
    sql: ${TABLE}.attempts ;;
  }

  dimension: message {
    type: string
    sql: ${TABLE}.message ;;
  }

  measure: failures {
    type: count
    drill_fields: [stage, kind, message]
  }
}
