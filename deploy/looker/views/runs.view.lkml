view: runs {
  extends: [run_history_columns]

  dimension: run_id { primary_key: yes }

  measure: count {
    type: count
    drill_fields: [run_id, experiment, started_time, state]
  }

  measure: minutes {
    type: sum
    value_format: "0.0"
    sql: ${duration_s} / 60 ;;
  }

  measure: call_count {
    type: sum
    description: "Every attempt at a service"
    sql: ${calls} ;;
  }

  measure: ledger_hit_count {
    type: sum
    description: "Requests that had been paid for before"
    sql: ${ledger_hits} ;;
  }

  measure: failure_count {
    type: sum
    sql: ${failures} ;;
  }

  measure: warning_count {
    type: sum
    sql: ${warnings} ;;
  }

  measure: share_from_ledger {
    type: number
    value_format: "0.0%"
    sql: ${ledger_hit_count} / NULLIF(${call_count} + ${ledger_hit_count}, 0) ;;
  }
}
