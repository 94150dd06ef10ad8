view: failure_kinds {
  sql_table_name: `@{dataset}.failure_kinds` ;;

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.caller_id, '|', ${TABLE}.stage, '|', ${TABLE}.kind) ;;
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

  dimension: config_id {
    type: string
    sql: ${TABLE}.config_id ;;
  }

  dimension: caller {
    type: string
    description: "The configuration that made the calls: another one for the parts of a fusion"
    sql: ${TABLE}.caller ;;
  }

  dimension: caller_id {
    type: string
    sql: ${TABLE}.caller_id ;;
  }

  dimension: stage {
    type: string
    sql: ${TABLE}.stage ;;
  }

  dimension: kind {
    type: string
    sql: ${TABLE}.kind ;;
  }

  dimension: example {
    type: string
    description: "One of the messages"
    sql: ${TABLE}.example ;;
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

  measure: failure_count {
    type: sum
    description: "Every call once: for the configuration that made it"
    sql: CASE WHEN ${config_id} = ${caller_id} THEN ${failures} END ;;
    drill_fields: [configuration, stage, kind, example]
  }

  measure: attempt_count {
    type: sum
    description: "Of every call once: for the configuration that made it"
    sql: CASE WHEN ${config_id} = ${caller_id} THEN ${attempts} END ;;
  }

  measure: inherited_count {
    type: sum
    description: "Calls of parts that a fusion lacks; a call counts once for each fusion"
    sql: CASE WHEN ${config_id} != ${caller_id} THEN ${failures} END ;;
  }

  measure: query_count {
    type: number
    description: "Queries that failed; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${queries}) END ;;
  }
}
