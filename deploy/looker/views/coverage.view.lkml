view: coverage {
  extends: [coverage_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id) ;;
  }

  dimension: cut_from { description: "The configuration whose calls it uses, where it makes none of its own" }
  dimension: position { hidden: no }

  dimension: dropped_at {
    description: "Queries that the configuration was asked until a race dropped it; empty where it was asked all of them"
    hidden: no
  }

  dimension: panel { description: "The metrics that the counts are of: those with the highest failure rate" }

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
