view: cost {
  extends: [cost_columns]

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

  dimension: started_day { hidden: yes }

  dimension_group: started {
    type: time
    timeframes: [
      raw,
      hour,
      date,
      week,
      month,
    ]
    datatype: timestamp
    sql: ${TABLE}.started_hour ;;
  }

  dimension_group: started_hour { hidden: yes }

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
