# Join it to queries, which are of finished runs. By default runs store the rankings of retrievers that they called.
view: rankings {
  extends: [rankings_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id) ;;
  }

  dimension: run_id { hidden: yes }
  dimension: config_id { hidden: yes }
  dimension: query_id { hidden: yes }
  dimension: experiment { hidden: yes }
  dimension_group: started { hidden: yes }
}
