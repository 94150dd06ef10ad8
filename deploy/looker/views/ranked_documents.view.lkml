# The documents of a ranking, unnested from rankings.documents.
view: ranked_documents {
  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${rankings.key}, '|', CAST(${TABLE}.rank AS STRING)) ;;
  }

  dimension: rank {
    type: number
    sql: ${TABLE}.rank ;;
  }

  dimension: doc_id {
    type: string
    sql: ${TABLE}.doc_id ;;
  }

  dimension: score {
    type: number
    value_format: "0.0000"
    sql: ${TABLE}.score ;;
  }

  dimension: grade {
    type: number
    description: "Empty where it is not judged"
    sql: ${TABLE}.grade ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: is_judged {
    type: yesno
    sql: ${TABLE}.grade IS NOT NULL ;;
  }

  measure: documents {
    type: count
    drill_fields: [rank, doc_id, grade, text]
  }

  measure: judged {
    type: count
    filters: [is_judged: "yes"]
  }

  measure: best_grade {
    type: max
    sql: ${grade} ;;
  }
}
