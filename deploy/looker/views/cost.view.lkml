view: cost {
  sql_table_name: `@{dataset}.cost` ;;

  parameter: price_per_1000_calls {
    type: number
    default_value: "0"
  }

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(CAST(${TABLE}.started_hour AS STRING), '|', ${TABLE}.experiment) ;;
  }

  dimension: experiment {
    type: string
    sql: ${TABLE}.experiment ;;
  }

  dimension_group: started {
    type: time
    timeframes: [raw, hour, date, week, month]
    datatype: timestamp
    sql: ${TABLE}.started_hour ;;
  }

  dimension: started_day {
    type: date
    convert_tz: no
    datatype: date
    hidden: yes
    sql: ${TABLE}.started_day ;;
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

  measure: run_count {
    type: sum
    sql: ${runs} ;;
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

  measure: minutes {
    type: sum
    value_format: "0.0"
    sql: ${duration_s} / 60 ;;
  }

  measure: share_from_ledger {
    type: number
    value_format: "0.0%"
    sql: ${ledger_hit_count} / NULLIF(${call_count} + ${ledger_hit_count}, 0) ;;
  }

  measure: price {
    type: number
    description: "At the price that you give per thousand calls"
    value_format: "0.00"
    sql: ${call_count} * {% parameter price_per_1000_calls %} / 1000 ;;
  }

  measure: saved {
    type: number
    description: "What the ledger saved, at that price"
    value_format: "0.00"
    sql: ${ledger_hit_count} * {% parameter price_per_1000_calls %} / 1000 ;;
  }
}
