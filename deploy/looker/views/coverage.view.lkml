view: coverage {
  sql_table_name: `@{dataset}.coverage` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id) ;;
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

  dimension: dialect {
    type: string
    description: "The tool by whose rules it is scored; empty for runs of older releases"
    sql: ${TABLE}.dialect ;;
  }

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: cut_from {
    type: string
    description: "The configuration whose calls it uses, where it makes none of its own"
    sql: ${TABLE}.cut_from ;;
  }

  dimension: retriever {
    type: string
    sql: ${TABLE}.retriever ;;
  }

  dimension: position {
    type: number
    sql: ${TABLE}.position ;;
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
    description: "Queries that the configuration was asked until a race dropped it; empty where it was asked all of them"
    sql: ${TABLE}.dropped_at ;;
  }

  dimension: undefined {
    type: number
    hidden: yes
    sql: ${TABLE}.undefined ;;
  }

  dimension: panel {
    type: string
    description: "The metrics that the counts are of: those with the highest failure rate"
    sql: ${TABLE}.panel ;;
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

  measure: query_count {
    type: sum
    description: "Queries that were scored"
    sql: ${queries} ;;
  }

  measure: empty_count {
    type: sum
    description: "Queries without any result"
    sql: ${empty} ;;
  }

  measure: failed_count {
    type: sum
    description: "Queries that were not scored"
    sql: ${failed} ;;
  }

  measure: missing_count {
    type: sum
    description: "Queries that the dialect leaves out"
    sql: ${missing} ;;
  }

  measure: not_asked_count {
    type: sum
    description: "Queries that came after a race had dropped the configuration"
    sql: ${not_asked} ;;
  }

  measure: undefined_count {
    type: sum
    description: "Queries whose value does not exist"
    sql: ${undefined} ;;
  }

  measure: share_empty {
    type: number
    value_format: "0.0%"
    sql: ${empty_count} / NULLIF(${query_count}, 0) ;;
  }

  measure: share_failed {
    type: number
    value_format: "0.0%"
    sql: ${failed_count} / NULLIF(${query_count} + ${undefined_count} + ${failed_count}, 0) ;;
  }

  measure: invalid_count {
    type: number
    description: "Calls that failed: invalid; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_invalid}) END ;;
  }

  measure: permission_count {
    type: number
    description: "Calls that failed: permission; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_permission}) END ;;
  }

  measure: not_found_count {
    type: number
    description: "Calls that failed: not_found; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_not_found}) END ;;
  }

  measure: quota_count {
    type: number
    description: "Calls that failed: quota; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_quota}) END ;;
  }

  measure: timeout_count {
    type: number
    description: "Calls that failed: timeout; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_timeout}) END ;;
  }

  measure: unavailable_count {
    type: number
    description: "Calls that failed: unavailable; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_unavailable}) END ;;
  }

  measure: malformed_count {
    type: number
    description: "Calls that failed: malformed; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_malformed}) END ;;
  }

  measure: blocked_count {
    type: number
    description: "Calls that failed: blocked; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_blocked}) END ;;
  }

  measure: truncated_count {
    type: number
    description: "Calls that failed: truncated; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_truncated}) END ;;
  }

  measure: over_budget_count {
    type: number
    description: "Calls that failed: over budget; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${failed_over_budget}) END ;;
  }
}
