# Join it to runs: a row may be of a run that did not finish.
view: judge_quality {
  extends: [judge_quality_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.step, '|', ${TABLE}.judge, '|', ${TABLE}.model_version, '|', ${TABLE}.prompt_hash) ;;
  }

  dimension: step { description: "What the judge was asked: support, grade, answer_kind or nugget_assign" }
  dimension: judge { description: "Judges in the process say what they are, such as word overlap" }
  dimension: prompt_hash { description: "Of the template of the prompt" }

  dimension: model_versions {
    sql: TO_JSON_STRING(${TABLE}.model_versions) ;;
  }

  dimension: sentinel_groups {
    sql: TO_JSON_STRING(${TABLE}.sentinel_groups) ;;
  }

  dimension: drift_since { hidden: yes }

  measure: item_count {
    type: sum
    description: "Items that were judged"
    sql: ${items} ;;
    drill_fields: [step, judge, model_version]
  }

  measure: failed_count {
    type: sum
    description: "Items without a verdict"
    sql: ${failed} ;;
  }

  measure: repeated_count {
    type: sum
    description: "Items that were judged several times"
    sql: ${repeated} ;;
  }

  measure: self_agreement {
    type: number
    description: "Share of pairs of verdicts of one item that agree; empty unless the row of the result is one step of one run"
    value_format: "0.0%"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${agreement}) END ;;
  }

  measure: within_deviation {
    type: number
    description: "Standard deviation of values within an item; empty unless the row of the result is one step of one run"
    value_format: "0.000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${within_sd}) END ;;
  }

  measure: sentinel_count {
    type: sum
    description: "Items whose verdict is known"
    sql: ${sentinels} ;;
  }

  measure: accuracy {
    type: number
    description: "Over items whose verdict is known; empty unless the row of the result is one step of one run"
    value_format: "0.0%"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${sentinel_accuracy}) END ;;
  }

  measure: accuracy_low {
    type: number
    value_format: "0.0%"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${sentinel_low}) END ;;
  }

  measure: accuracy_high {
    type: number
    value_format: "0.0%"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${sentinel_high}) END ;;
  }

  measure: drift_p {
    type: number
    description: "Of no change since the last sentinels of the same judge"
    value_format: "0.0000"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${drift_p_value}) END ;;
  }

  measure: sum_input_tokens {
    type: sum
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

  measure: sum_cost {
    type: sum
    sql: ${cost} ;;
  }
}
