view: verdicts_of_configuration {
  extends: [verdicts_of_configuration_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', CAST(${TABLE}.answer_sample AS STRING), '|', ${TABLE}.item_id, '|', COALESCE(${TABLE}.owner, ''), '|', ${TABLE}.evidence, '|', COALESCE(CAST(${TABLE}.rank AS STRING), ''), '|', COALESCE(CAST(${TABLE}.position AS STRING), ''), '|', CAST(${TABLE}.sample AS STRING)) ;;
  }

  dimension: answer_sample {
    description: "Number of the answer among several to one prompt, from 0"
    hidden: no
  }

  dimension: step { description: "What the judge was asked: support, grade, answer_kind or nugget_assign" }
  dimension: owner { description: "Whose claim: of the answer or of the reference answer; empty for a verdict of a text as a whole" }
  dimension: position { hidden: no }
  dimension: evidence { description: "What the verdict rests on: a context, the reference answer or the answer" }
  dimension: rank { hidden: no }
  dimension: is_cited { description: "The answer refers to it" }

  dimension: grade {
    description: "0 to 3"
    hidden: no
  }

  dimension: sample {
    description: "Number of the answer among several to one prompt, from 0"
    hidden: no
  }

  dimension: is_repeat { description: "A question asked again, to see how far the judge agrees with itself; no value rests on it" }
  dimension: judge { description: "Judges in the process say what they are, such as word overlap" }
  dimension: prompt_hash { description: "Of the template of the prompt" }
  dimension: item_id { hidden: yes }
  dimension: evidence_hash { hidden: yes }

  measure: verdicts {
    type: count
    drill_fields: [
      claim,
      verdict,
      evidence,
      doc_id,
      evidence_text,
      reason,
    ]
  }

  measure: supported_count {
    type: count_distinct
    description: "A claim counts once for every text that supports it"
    sql: CASE WHEN ${verdict} = 'supported' THEN ${key} END ;;
  }

  measure: contradicted_count {
    type: count_distinct
    description: "A claim counts once for every text that contradicts it"
    sql: CASE WHEN ${verdict} = 'contradicted' THEN ${key} END ;;
  }

  measure: mean_grade {
    type: average
    sql: ${grade} ;;
  }
}
