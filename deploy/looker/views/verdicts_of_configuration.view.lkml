view: verdicts_of_configuration {
  sql_table_name: `@{dataset}.verdicts_of_configuration` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', CAST(${TABLE}.answer_sample AS STRING), '|', ${TABLE}.item_id, '|', COALESCE(${TABLE}.owner, ''), '|', ${TABLE}.evidence, '|', COALESCE(CAST(${TABLE}.rank AS STRING), ''), '|', COALESCE(CAST(${TABLE}.position AS STRING), ''), '|', CAST(${TABLE}.sample AS STRING)) ;;
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

  dimension: answer_sample {
    type: number
    description: "Number of the answer among several to one prompt, from 0"
    sql: ${TABLE}.answer_sample ;;
  }

  dimension: step {
    type: string
    description: "What the judge was asked: support, grade, answer_kind or nugget_assign"
    sql: ${TABLE}.step ;;
  }

  dimension: owner {
    type: string
    description: "Whose claim: of the answer or of the reference answer; empty for a verdict of a text as a whole"
    sql: ${TABLE}.owner ;;
  }

  dimension: position {
    type: number
    sql: ${TABLE}.position ;;
  }

  dimension: claim {
    type: string
    sql: ${TABLE}.claim ;;
  }

  dimension: quote_start {
    type: number
    hidden: yes
    sql: ${TABLE}.quote_start ;;
  }

  dimension: quote_end {
    type: number
    hidden: yes
    sql: ${TABLE}.quote_end ;;
  }

  dimension: evidence {
    type: string
    description: "What the verdict rests on: a context, the reference answer or the answer"
    sql: ${TABLE}.evidence ;;
  }

  dimension: rank {
    type: number
    sql: ${TABLE}.rank ;;
  }

  dimension: doc_id {
    type: string
    sql: ${TABLE}.doc_id ;;
  }

  dimension: is_cited {
    type: yesno
    description: "The answer refers to it"
    sql: ${TABLE}.is_cited ;;
  }

  dimension: evidence_text {
    type: string
    sql: ${TABLE}.evidence_text ;;
  }

  dimension: verdict {
    type: string
    sql: ${TABLE}.verdict ;;
  }

  dimension: grade {
    type: number
    description: "0 to 3"
    sql: ${TABLE}.grade ;;
  }

  dimension: reason {
    type: string
    sql: ${TABLE}.reason ;;
  }

  dimension: sample {
    type: number
    description: "Number of the answer among several to one prompt, from 0"
    sql: ${TABLE}.sample ;;
  }

  dimension: is_repeat {
    type: yesno
    description: "A question asked again, to see how far the judge agrees with itself; no value rests on it"
    sql: ${TABLE}.is_repeat ;;
  }

  dimension: judge {
    type: string
    description: "Judges in the process say what they are, such as word overlap"
    sql: ${TABLE}.judge ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: prompt_hash {
    type: string
    description: "Of the template of the prompt"
    sql: ${TABLE}.prompt_hash ;;
  }

  dimension: item_id {
    type: string
    hidden: yes
    sql: ${TABLE}.item_id ;;
  }

  dimension: evidence_hash {
    type: string
    hidden: yes
    sql: ${TABLE}.evidence_hash ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  measure: verdicts {
    type: count
    drill_fields: [claim, verdict, evidence, doc_id, evidence_text, reason]
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
