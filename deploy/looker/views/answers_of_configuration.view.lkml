view: answers_of_configuration {
  extends: [answers_of_configuration_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.query_id, '|', CAST(${TABLE}.sample AS STRING)) ;;
  }

  dimension: sample {
    description: "Number of the answer among several to one prompt, from 0"
    hidden: no
  }

  dimension: status { description: "ok, refused, blocked, truncated, failed or no_context" }
  dimension: reference { description: "The reference answer of the dataset" }
  dimension: message { description: "Why there is no answer, or only a part of it" }
  dimension: model { description: "Models in the process say what they are, such as word overlap" }
  dimension: prompt_hash { description: "Of the template of the prompt" }
  dimension: position { hidden: no }

  measure: answers {
    type: count
    drill_fields: [
      configuration,
      query_id,
      status,
      answer,
      reference,
    ]
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
