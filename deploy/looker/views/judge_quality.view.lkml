# Join it to runs: a row may be of a run that did not finish.
view: judge_quality {
  sql_table_name: `@{dataset}.judge_quality` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.step, '|', ${TABLE}.judge, '|', ${TABLE}.model_version, '|', ${TABLE}.prompt_hash) ;;
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

  dimension: step {
    type: string
    description: "What the judge was asked: support, grade, answer_kind or nugget_assign"
    sql: ${TABLE}.step ;;
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

  dimension: items {
    type: number
    hidden: yes
    sql: ${TABLE}.items ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: repeated {
    type: number
    hidden: yes
    sql: ${TABLE}.repeated ;;
  }

  dimension: agreement {
    type: number
    hidden: yes
    sql: ${TABLE}.agreement ;;
  }

  dimension: within_sd {
    type: number
    hidden: yes
    sql: ${TABLE}.within_sd ;;
  }

  dimension: sentinels {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinels ;;
  }

  dimension: sentinel_accuracy {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinel_accuracy ;;
  }

  dimension: sentinel_low {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinel_low ;;
  }

  dimension: sentinel_high {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinel_high ;;
  }

  dimension: model_versions {
    type: string
    hidden: yes
    sql: TO_JSON_STRING(${TABLE}.model_versions) ;;
  }

  dimension: compared {
    type: number
    hidden: yes
    sql: ${TABLE}.compared ;;
  }

  dimension: sentinels_right {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinels_right ;;
  }

  dimension: sentinel_groups {
    type: string
    hidden: yes
    sql: TO_JSON_STRING(${TABLE}.sentinel_groups) ;;
  }

  dimension: drift_since {
    type: string
    hidden: yes
    sql: ${TABLE}.drift_since ;;
  }

  dimension: drift_p_value {
    type: number
    hidden: yes
    sql: ${TABLE}.drift_p_value ;;
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

  dimension: cost {
    type: number
    hidden: yes
    sql: ${TABLE}.cost ;;
  }

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
