view: contexts_of_answer {
  extends: [contexts_of_answer_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', CAST(${TABLE}.sample AS STRING), '|', COALESCE(CAST(${TABLE}.rank AS STRING), '')) ;;
  }

  dimension: sample {
    description: "Number of the answer among several to one prompt, from 0"
    hidden: no
  }

  dimension: rank { hidden: no }
  dimension: is_cited { description: "The answer refers to it" }
  dimension: text_hash { hidden: yes }

  measure: contexts {
    type: count
    drill_fields: [rank, doc_id, is_cited, text]
  }

  measure: cited_count {
    type: count_distinct
    sql: CASE WHEN ${is_cited} THEN ${key} END ;;
  }
}
