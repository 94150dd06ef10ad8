view: configurations {
  sql_table_name: `@{dataset}.configuration_history` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id) ;;
  }

  dimension: run_id {
    type: string
    hidden: yes
    sql: ${TABLE}.run_id ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: position {
    type: number
    sql: ${TABLE}.position ;;
  }

  dimension: retriever {
    type: string
    sql: ${TABLE}.retriever ;;
  }

  dimension: parameters {
    type: string
    sql: ${TABLE}.parameters ;;
  }

  dimension: derived_from {
    type: string
    sql: ${TABLE}.derived_from ;;
  }

  dimension: caller_id {
    type: string
    hidden: yes
    sql: COALESCE(${TABLE}.derived_from, ${TABLE}.config_id) ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}
