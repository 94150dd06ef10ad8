# Join it to queries. A failed call has a row for every configuration that needed it.
view: failed_calls {
  sql_table_name: `@{dataset}.unanswered` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.caller_id, '|', ${TABLE}.query_id, '|', ${TABLE}.stage, '|', ${TABLE}.kind) ;;
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

  dimension: caller {
    type: string
    description: "The configuration that made the call: the one that this is cut from, or a part of this fusion"
    sql: ${TABLE}.caller ;;
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
    description: "A call counts once for each configuration that needed it"
    drill_fields: [caller, stage, kind, message]
  }
}
