view: configurations {
  extends: [configuration_history_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id) ;;
  }

  dimension: run_id { hidden: yes }
  dimension: position { hidden: no }
  dimension: experiment { hidden: yes }
  dimension: is_latest { hidden: yes }
  dimension: dataset_fingerprint { hidden: yes }
  dimension_group: started { hidden: yes }
  dimension_group: previous_started { hidden: yes }
}
