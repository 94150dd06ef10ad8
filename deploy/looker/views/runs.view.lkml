view: runs {
  sql_table_name: `@{dataset}.run_history` ;;

  dimension: run_id {
    type: string
    primary_key: yes
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

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
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

  dimension: warnings {
    type: number
    hidden: yes
    sql: ${TABLE}.warnings ;;
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
