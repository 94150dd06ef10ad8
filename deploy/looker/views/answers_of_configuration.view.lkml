view: answers_of_configuration {
  sql_table_name: `@{dataset}.answers_of_configuration` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', CAST(${TABLE}.sample AS STRING)) ;;
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

  dimension: query {
    type: string
    sql: ${TABLE}.query ;;
  }

  dimension: sample {
    type: number
    description: "Number of the answer among several to one prompt, from 0"
    sql: ${TABLE}.sample ;;
  }

  dimension: status {
    type: string
    description: "ok, refused, blocked, truncated, failed or no_context"
    sql: ${TABLE}.status ;;
  }

  dimension: answer {
    type: string
    sql: ${TABLE}.answer ;;
  }

  dimension: reference {
    type: string
    description: "The reference answer of the dataset"
    sql: ${TABLE}.reference ;;
  }

  dimension: message {
    type: string
    description: "Why there is no answer, or only a part of it"
    sql: ${TABLE}.message ;;
  }

  dimension: contexts {
    type: number
    hidden: yes
    sql: ${TABLE}.contexts ;;
  }

  dimension: contexts_left_out {
    type: number
    hidden: yes
    sql: ${TABLE}.contexts_left_out ;;
  }

  dimension: citations {
    type: number
    hidden: yes
    sql: ${TABLE}.citations ;;
  }

  dimension: service {
    type: string
    sql: ${TABLE}.service ;;
  }

  dimension: model {
    type: string
    description: "Models in the process say what they are, such as word overlap"
    sql: ${TABLE}.model ;;
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

  dimension: input_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.input_tokens ;;
  }

  dimension: cached_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.cached_tokens ;;
  }

  dimension: output_tokens {
    type: number
    hidden: yes
    sql: ${TABLE}.output_tokens ;;
  }

  dimension: seconds {
    type: number
    hidden: yes
    sql: ${TABLE}.seconds ;;
  }

  dimension: first_token_s {
    type: number
    hidden: yes
    sql: ${TABLE}.first_token_s ;;
  }

  dimension: cost {
    type: number
    hidden: yes
    sql: ${TABLE}.cost ;;
  }

  dimension: position {
    type: number
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  measure: answers {
    type: count
    drill_fields: [configuration, query_id, status, answer, reference]
  }

  measure: not_answered_count {
    type: sum
    description: "Refused, blocked, truncated, failed, or without contexts"
    sql: CASE WHEN ${status} = 'ok' THEN 0 ELSE 1 END ;;
  }

  measure: mean_contexts {
    type: average
    description: "Contexts that the model was given"
    sql: ${contexts} ;;
  }

  measure: left_out_count {
    type: sum
    description: "Contexts that were too long together"
    sql: ${contexts_left_out} ;;
  }

  measure: mean_citations {
    type: average
    description: "Documents that the answer refers to"
    sql: ${citations} ;;
  }

  measure: sum_input_tokens {
    type: sum
    description: "Configurations with an equal prompt share one call, and count it each"
    sql: ${input_tokens} ;;
  }

  measure: sum_cached_tokens {
    type: sum
    sql: ${cached_tokens} ;;
  }

  measure: sum_output_tokens {
    type: sum
    sql: ${output_tokens} ;;
  }

  measure: p50_seconds {
    type: percentile
    percentile: 50
    label: "Duration p50 (s)"
    description: "Duration of an application's call"
    sql: ${seconds} ;;
    value_format: "0.00"
  }

  measure: p95_seconds {
    type: percentile
    percentile: 95
    label: "Duration p95 (s)"
    description: "Duration of an application's call"
    sql: ${seconds} ;;
    value_format: "0.00"
  }

  measure: p95_first_token_s {
    type: percentile
    percentile: 95
    label: "Time to first token p95 (s)"
    sql: ${first_token_s} ;;
    value_format: "0.00"
  }

  measure: sum_cost {
    type: sum
    description: "Configurations with an equal prompt share one call, and count it each"
    sql: ${cost} ;;
  }
}
