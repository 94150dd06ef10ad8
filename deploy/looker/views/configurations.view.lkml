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

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
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

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}
