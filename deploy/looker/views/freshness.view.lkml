# All runs, however old, so that a dashboard without rows says why it has none.
view: freshness {
  extends: [run_history_columns]

  dimension: run_id { primary_key: yes }

  measure: chosen_run {
    type: string
    label: "Run"
    description: "When the chosen run began; or that it did not within the days that explores read"
    sql: CASE
      WHEN MAX(${started_raw}) >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {% parameter horizon.days %} DAY)
        THEN CONCAT('began on ', CAST(DATE(MAX(${started_raw})) AS STRING), ' (UTC)')
      ELSE CONCAT('no run in {% parameter horizon.days %} days: the chosen one began on ',
        CAST(DATE(MAX(${started_raw})) AS STRING), ' (UTC)') END ;;
  }

  measure: count {
    type: count
    drill_fields: [run_id, experiment, started_time, state]
  }
}
