view: contexts_of_answer {
  sql_table_name: `@{dataset}.contexts_of_answer` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', CAST(${TABLE}.sample AS STRING), '|', COALESCE(CAST(${TABLE}.rank AS STRING), '')) ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: sample {
    type: number
    description: "Number of the answer among several to one prompt, from 0"
    sql: ${TABLE}.sample ;;
  }

  dimension: rank {
    type: number
    sql: ${TABLE}.rank ;;
  }

  dimension: doc_id {
    type: string
    sql: ${TABLE}.doc_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: is_cited {
    type: yesno
    description: "The answer refers to it"
    sql: ${TABLE}.is_cited ;;
  }

  dimension: text_hash {
    type: string
    hidden: yes
    sql: ${TABLE}.text_hash ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  measure: contexts {
    type: count
    drill_fields: [rank, doc_id, is_cited, text]
  }

  measure: cited_count {
    type: count_distinct
    sql: CASE WHEN ${is_cited} THEN ${key} END ;;
  }
}
