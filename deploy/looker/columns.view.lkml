# Made from the tables and views by `make deploy-files`; do not edit. The views in
# views/ extend these: there are keys, measures, descriptions, and what is hidden or shown.

view: answers_of_configuration_columns {
  extension: required
  sql_table_name: `@{dataset}.answers_of_configuration` ;;

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
    hidden: yes
    sql: ${TABLE}.sample ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: answer {
    type: string
    sql: ${TABLE}.answer ;;
  }

  dimension: reference {
    type: string
    sql: ${TABLE}.reference ;;
  }

  dimension: message {
    type: string
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
    sql: ${TABLE}.model ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: prompt_hash {
    type: string
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

  dimension: steps {
    type: string
    sql: ${TABLE}.steps ;;
  }

  dimension: cost {
    type: number
    hidden: yes
    sql: ${TABLE}.cost ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: configuration_history_columns {
  extension: required
  sql_table_name: `@{dataset}.configuration_history` ;;

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

  dimension: dataset_fingerprint {
    type: string
    sql: ${TABLE}.dataset_fingerprint ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: retriever {
    type: string
    sql: ${TABLE}.retriever ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: parameters {
    type: string
    sql: ${TABLE}.parameters ;;
  }

  dimension: derived_from {
    type: string
    sql: ${TABLE}.derived_from ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: contexts_of_answer_columns {
  extension: required
  sql_table_name: `@{dataset}.contexts_of_answer` ;;

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
    hidden: yes
    sql: ${TABLE}.sample ;;
  }

  dimension: rank {
    type: number
    hidden: yes
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
    sql: ${TABLE}.is_cited ;;
  }

  dimension: text_hash {
    type: string
    sql: ${TABLE}.text_hash ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: cost_columns {
  extension: required
  sql_table_name: `@{dataset}.cost` ;;

  dimension_group: started_hour {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_hour ;;
  }

  dimension: started_day {
    type: date
    convert_tz: no
    datatype: date
    sql: ${TABLE}.started_day ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension: runs {
    type: number
    hidden: yes
    sql: ${TABLE}.runs ;;
  }

  dimension: calls {
    type: number
    hidden: yes
    sql: ${TABLE}.calls ;;
  }

  dimension: ledger_hits {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_hits ;;
  }

  dimension: failures {
    type: number
    hidden: yes
    sql: ${TABLE}.failures ;;
  }

  dimension: duration_s {
    type: number
    hidden: yes
    sql: ${TABLE}.duration_s ;;
  }

  dimension: ledger_share {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_share ;;
  }
}

view: coverage_columns {
  extension: required
  sql_table_name: `@{dataset}.coverage` ;;

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

  dimension: retriever {
    type: string
    sql: ${TABLE}.retriever ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: cut_from {
    type: string
    sql: ${TABLE}.cut_from ;;
  }

  dimension: panel {
    type: string
    sql: ${TABLE}.panel ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: not_asked {
    type: number
    hidden: yes
    sql: ${TABLE}.not_asked ;;
  }

  dimension: dropped_at {
    type: number
    hidden: yes
    sql: ${TABLE}.dropped_at ;;
  }

  dimension: empty_rate {
    type: number
    hidden: yes
    sql: ${TABLE}.empty_rate ;;
  }

  dimension: failure_rate {
    type: number
    hidden: yes
    sql: ${TABLE}.failure_rate ;;
  }

  dimension: failed_invalid {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_invalid ;;
  }

  dimension: failed_permission {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_permission ;;
  }

  dimension: failed_not_found {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_not_found ;;
  }

  dimension: failed_quota {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_quota ;;
  }

  dimension: failed_timeout {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_timeout ;;
  }

  dimension: failed_unavailable {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_unavailable ;;
  }

  dimension: failed_malformed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_malformed ;;
  }

  dimension: failed_blocked {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_blocked ;;
  }

  dimension: failed_truncated {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_truncated ;;
  }

  dimension: failed_over_budget {
    type: number
    hidden: yes
    sql: ${TABLE}.failed_over_budget ;;
  }
}

view: differences_columns {
  extension: required
  sql_table_name: `@{dataset}.differences` ;;

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

  dimension: slice {
    type: string
    sql: ${TABLE}.slice ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: baseline {
    type: string
    sql: ${TABLE}.baseline ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: p_value {
    type: number
    hidden: yes
    sql: ${TABLE}.p_value ;;
  }

  dimension: p_method {
    type: string
    sql: ${TABLE}.p_method ;;
  }

  dimension: p_adjusted {
    type: number
    hidden: yes
    sql: ${TABLE}.p_adjusted ;;
  }

  dimension: q_value {
    type: number
    hidden: yes
    sql: ${TABLE}.q_value ;;
  }

  dimension: t_p_value {
    type: number
    hidden: yes
    sql: ${TABLE}.t_p_value ;;
  }

  dimension: effect_size {
    type: number
    hidden: yes
    sql: ${TABLE}.effect_size ;;
  }

  dimension: detectable {
    type: number
    hidden: yes
    sql: ${TABLE}.detectable ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: unpaired {
    type: number
    hidden: yes
    sql: ${TABLE}.unpaired ;;
  }

  dimension: wins {
    type: number
    hidden: yes
    sql: ${TABLE}.wins ;;
  }

  dimension: ties {
    type: number
    hidden: yes
    sql: ${TABLE}.ties ;;
  }

  dimension: losses {
    type: number
    hidden: yes
    sql: ${TABLE}.losses ;;
  }

  dimension: clusters {
    type: number
    hidden: yes
    sql: ${TABLE}.clusters ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: baseline_id {
    type: string
    sql: ${TABLE}.baseline_id ;;
  }
}

view: failure_kinds_columns {
  extension: required
  sql_table_name: `@{dataset}.failure_kinds` ;;

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

  dimension: caller {
    type: string
    sql: ${TABLE}.caller ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: kind {
    type: string
    sql: ${TABLE}.kind ;;
  }

  dimension: failures {
    type: number
    hidden: yes
    sql: ${TABLE}.failures ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: attempts {
    type: number
    hidden: yes
    sql: ${TABLE}.attempts ;;
  }

  dimension: example {
    type: string
    sql: ${TABLE}.example ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: caller_id {
    type: string
    sql: ${TABLE}.caller_id ;;
  }
}

view: judge_quality_columns {
  extension: required
  sql_table_name: `@{dataset}.judge_quality` ;;

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
    sql: ${TABLE}.step ;;
  }

  dimension: judge {
    type: string
    sql: ${TABLE}.judge ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: model_versions {
    type: string
    hidden: yes
    sql: ${TABLE}.model_versions ;;
  }

  dimension: prompt_hash {
    type: string
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

  dimension: compared {
    type: number
    hidden: yes
    sql: ${TABLE}.compared ;;
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

  dimension: sentinels_right {
    type: number
    hidden: yes
    sql: ${TABLE}.sentinels_right ;;
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

  dimension: sentinel_groups {
    type: string
    hidden: yes
    sql: ${TABLE}.sentinel_groups ;;
  }

  dimension: drift_since {
    type: string
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
}

view: leaderboard_columns {
  extension: required
  sql_table_name: `@{dataset}.leaderboard` ;;

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

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: joint_low {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_low ;;
  }

  dimension: joint_high {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_high ;;
  }

  dimension: may_be_best {
    type: yesno
    sql: ${TABLE}.may_be_best ;;
  }

  dimension: panel {
    type: string
    sql: ${TABLE}.panel ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    sql: ${TABLE}.highest ;;
  }

  dimension: tie_lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_lowest ;;
  }

  dimension: tie_highest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_highest ;;
  }

  dimension: equal_to {
    type: string
    sql: ${TABLE}.equal_to ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: monitoring_columns {
  extension: required
  sql_table_name: `@{dataset}.monitoring` ;;

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

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: mode {
    type: string
    sql: ${TABLE}.mode ;;
  }

  dimension: state {
    type: string
    sql: ${TABLE}.state ;;
  }

  dimension: alarm {
    type: yesno
    sql: ${TABLE}.alarm ;;
  }

  dimension: change {
    type: number
    hidden: yes
    sql: ${TABLE}.change ;;
  }

  dimension: low {
    type: number
    hidden: yes
    sql: ${TABLE}.low ;;
  }

  dimension: high {
    type: number
    hidden: yes
    sql: ${TABLE}.high ;;
  }

  dimension: lowest_high {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest_high ;;
  }

  dimension: highest_low {
    type: number
    hidden: yes
    sql: ${TABLE}.highest_low ;;
  }

  dimension: nights {
    type: number
    hidden: yes
    sql: ${TABLE}.nights ;;
  }

  dimension_group: since {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.since ;;
  }

  dimension: tolerance {
    type: number
    hidden: yes
    sql: ${TABLE}.tolerance ;;
  }

  dimension: baseline_run {
    type: string
    sql: ${TABLE}.baseline_run ;;
  }

  dimension: baseline_mean {
    type: number
    hidden: yes
    sql: ${TABLE}.baseline_mean ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: skipped {
    type: number
    hidden: yes
    sql: ${TABLE}.skipped ;;
  }

  dimension: quarter {
    type: number
    hidden: yes
    sql: ${TABLE}.quarter ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: query_changes_columns {
  extension: required
  sql_table_name: `@{dataset}.query_changes` ;;

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

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: previous_status {
    type: string
    sql: ${TABLE}.previous_status ;;
  }

  dimension: value {
    type: number
    hidden: yes
    sql: ${TABLE}.value ;;
  }

  dimension: previous_value {
    type: number
    hidden: yes
    sql: ${TABLE}.previous_value ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: query_metrics_columns {
  extension: required
  sql_table_name: `@{dataset}.query_metrics` ;;

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

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  dimension: metrics {
    type: string
    hidden: yes
    sql: ${TABLE}.metrics ;;
  }
}

view: rankings_columns {
  extension: required
  sql_table_name: `@{dataset}.rankings` ;;

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

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: documents {
    type: string
    hidden: yes
    sql: ${TABLE}.documents ;;
  }
}

view: regressions_columns {
  extension: required
  sql_table_name: `@{dataset}.regressions` ;;

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

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: previous_mean {
    type: number
    hidden: yes
    sql: ${TABLE}.previous_mean ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: verdict {
    type: string
    sql: ${TABLE}.verdict ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: unpaired {
    type: number
    hidden: yes
    sql: ${TABLE}.unpaired ;;
  }

  dimension: better {
    type: number
    hidden: yes
    sql: ${TABLE}.better ;;
  }

  dimension: worse {
    type: number
    hidden: yes
    sql: ${TABLE}.worse ;;
  }

  dimension: same {
    type: number
    hidden: yes
    sql: ${TABLE}.same ;;
  }

  dimension: parameters_changed {
    type: yesno
    sql: ${TABLE}.parameters_changed ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: run_choices_columns {
  extension: required
  sql_table_name: `@{dataset}.run_choices` ;;

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

  dimension: has_values {
    type: yesno
    sql: ${TABLE}.has_values ;;
  }

  dimension: is_last_good {
    type: yesno
    sql: ${TABLE}.is_last_good ;;
  }
}

view: run_history_columns {
  extension: required
  sql_table_name: `@{dataset}.run_history` ;;

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

  dimension_group: finished {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.finished_at ;;
  }

  dimension: state {
    type: string
    sql: ${TABLE}.state ;;
  }

  dimension: dataset_fingerprint {
    type: string
    sql: ${TABLE}.dataset_fingerprint ;;
  }

  dimension: duration_s {
    type: number
    hidden: yes
    sql: ${TABLE}.duration_s ;;
  }

  dimension: calls {
    type: number
    hidden: yes
    sql: ${TABLE}.calls ;;
  }

  dimension: ledger_hits {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_hits ;;
  }

  dimension: failures {
    type: number
    hidden: yes
    sql: ${TABLE}.failures ;;
  }

  dimension: ledger_share {
    type: number
    hidden: yes
    sql: ${TABLE}.ledger_share ;;
  }

  dimension: failures_per_call {
    type: number
    hidden: yes
    sql: ${TABLE}.failures_per_call ;;
  }

  dimension: warnings {
    type: number
    hidden: yes
    sql: ${TABLE}.warnings ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }
}

view: side_by_side_columns {
  extension: required
  sql_table_name: `@{dataset}.side_by_side` ;;

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

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: baseline {
    type: string
    sql: ${TABLE}.baseline ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: text {
    type: string
    sql: ${TABLE}.text ;;
  }

  dimension: status {
    type: string
    sql: ${TABLE}.status ;;
  }

  dimension: baseline_status {
    type: string
    sql: ${TABLE}.baseline_status ;;
  }

  dimension: value {
    type: number
    hidden: yes
    sql: ${TABLE}.value ;;
  }

  dimension: baseline_value {
    type: number
    hidden: yes
    sql: ${TABLE}.baseline_value ;;
  }

  dimension: difference {
    type: number
    hidden: yes
    sql: ${TABLE}.difference ;;
  }

  dimension: slices {
    type: string
    hidden: yes
    sql: ${TABLE}.slices ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: baseline_id {
    type: string
    sql: ${TABLE}.baseline_id ;;
  }
}

view: slice_leaderboard_columns {
  extension: required
  sql_table_name: `@{dataset}.slice_leaderboard` ;;

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

  dimension: slice {
    type: string
    sql: ${TABLE}.slice ;;
  }

  dimension: attribute {
    type: string
    sql: ${TABLE}.attribute ;;
  }

  dimension: value {
    type: string
    sql: ${TABLE}.value ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: joint_low {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_low ;;
  }

  dimension: joint_high {
    type: number
    hidden: yes
    sql: ${TABLE}.joint_high ;;
  }

  dimension: may_be_best {
    type: yesno
    sql: ${TABLE}.may_be_best ;;
  }

  dimension: panel {
    type: string
    sql: ${TABLE}.panel ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    sql: ${TABLE}.highest ;;
  }

  dimension: tie_lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_lowest ;;
  }

  dimension: tie_highest {
    type: number
    hidden: yes
    sql: ${TABLE}.tie_highest ;;
  }

  dimension: equal_to {
    type: string
    sql: ${TABLE}.equal_to ;;
  }

  dimension: position {
    type: number
    hidden: yes
    sql: ${TABLE}.position ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}

view: trend_columns {
  extension: required
  sql_table_name: `@{dataset}.trend` ;;

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension: dataset_fingerprint {
    type: string
    sql: ${TABLE}.dataset_fingerprint ;;
  }

  dimension: configuration {
    type: string
    sql: ${TABLE}.configuration ;;
  }

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: metric {
    type: string
    sql: ${TABLE}.metric ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_at ;;
  }

  dimension: run_id {
    type: string
    sql: ${TABLE}.run_id ;;
  }

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: mean {
    type: number
    hidden: yes
    sql: ${TABLE}.mean ;;
  }

  dimension: ci_low {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_low ;;
  }

  dimension: ci_high {
    type: number
    hidden: yes
    sql: ${TABLE}.ci_high ;;
  }

  dimension: std_error {
    type: number
    hidden: yes
    sql: ${TABLE}.std_error ;;
  }

  dimension: queries {
    type: number
    hidden: yes
    sql: ${TABLE}.queries ;;
  }

  dimension: empty {
    type: number
    hidden: yes
    sql: ${TABLE}.empty ;;
  }

  dimension: failed {
    type: number
    hidden: yes
    sql: ${TABLE}.failed ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: missing {
    type: number
    hidden: yes
    sql: ${TABLE}.missing ;;
  }

  dimension: lowest {
    type: number
    hidden: yes
    sql: ${TABLE}.lowest ;;
  }

  dimension: highest {
    type: number
    hidden: yes
    sql: ${TABLE}.highest ;;
  }

  dimension: previous_mean {
    type: number
    hidden: yes
    sql: ${TABLE}.previous_mean ;;
  }

  dimension: change {
    type: number
    hidden: yes
    sql: ${TABLE}.change ;;
  }

  dimension: parameters_changed {
    type: yesno
    sql: ${TABLE}.parameters_changed ;;
  }

  dimension: previous_run_id {
    type: string
    sql: ${TABLE}.previous_run_id ;;
  }

  dimension_group: previous_started {
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.previous_started_at ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: previous_config_id {
    type: string
    sql: ${TABLE}.previous_config_id ;;
  }
}

view: unanswered_columns {
  extension: required
  sql_table_name: `@{dataset}.unanswered` ;;

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

  dimension: caller {
    type: string
    sql: ${TABLE}.caller ;;
  }

  dimension: query_id {
    type: string
    sql: ${TABLE}.query_id ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: kind {
    type: string
    sql: ${TABLE}.kind ;;
  }

  dimension: attempts {
    type: number
    hidden: yes
    sql: ${TABLE}.attempts ;;
  }

  dimension: message {
    type: string
    sql: ${TABLE}.message ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: caller_id {
    type: string
    sql: ${TABLE}.caller_id ;;
  }

  dimension: derived_from {
    type: string
    sql: ${TABLE}.derived_from ;;
  }
}

view: verdicts_of_configuration_columns {
  extension: required
  sql_table_name: `@{dataset}.verdicts_of_configuration` ;;

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
    hidden: yes
    sql: ${TABLE}.answer_sample ;;
  }

  dimension: step {
    type: string
    sql: ${TABLE}.step ;;
  }

  dimension: owner {
    type: string
    sql: ${TABLE}.owner ;;
  }

  dimension: position {
    type: number
    hidden: yes
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
    sql: ${TABLE}.evidence ;;
  }

  dimension: rank {
    type: number
    hidden: yes
    sql: ${TABLE}.rank ;;
  }

  dimension: doc_id {
    type: string
    sql: ${TABLE}.doc_id ;;
  }

  dimension: is_cited {
    type: yesno
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
    hidden: yes
    sql: ${TABLE}.grade ;;
  }

  dimension: reason {
    type: string
    sql: ${TABLE}.reason ;;
  }

  dimension: sample {
    type: number
    hidden: yes
    sql: ${TABLE}.sample ;;
  }

  dimension: is_repeat {
    type: yesno
    sql: ${TABLE}.is_repeat ;;
  }

  dimension: judge {
    type: string
    sql: ${TABLE}.judge ;;
  }

  dimension: model_version {
    type: string
    sql: ${TABLE}.model_version ;;
  }

  dimension: prompt_hash {
    type: string
    sql: ${TABLE}.prompt_hash ;;
  }

  dimension: item_id {
    type: string
    sql: ${TABLE}.item_id ;;
  }

  dimension: evidence_hash {
    type: string
    sql: ${TABLE}.evidence_hash ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }
}
