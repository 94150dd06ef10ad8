view: failure_kinds {
  extends: [failure_kinds_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.caller_id, '|', ${TABLE}.stage, '|', ${TABLE}.kind) ;;
  }

  dimension: caller { description: "The configuration that made the calls: another one for what is fused or reranked" }
  dimension: example { description: "One of the messages" }

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
    description: "Calls for what is fused or reranked; a call counts once for each configuration that is made of it"
    sql: CASE WHEN ${config_id} != ${caller_id} THEN ${failures} END ;;
  }

  measure: query_count {
    type: number
    description: "Queries that failed; empty unless the row of the result is one row of the view"
    value_format: "0"
    sql: CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN(${queries}) END ;;
  }
}
