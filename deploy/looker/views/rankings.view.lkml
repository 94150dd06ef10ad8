# Join it to queries, which are of finished runs. By default runs store the rankings of retrievers that they called.
view: rankings {
  sql_table_name: `@{dataset}.rankings` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id) ;;
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

  dimension: documents {
    type: string
    hidden: yes
    sql: ${TABLE}.documents ;;
  }
}
