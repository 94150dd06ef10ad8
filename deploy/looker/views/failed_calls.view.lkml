# Join it to queries. A failed call has a row for every configuration that needed it.
view: failed_calls {
  extends: [unanswered_columns]

  dimension: key {
    type: string
    primary_key: yes
    hidden: yes
    sql: CONCAT(${TABLE}.run_id, '|', ${TABLE}.config_id, '|', ${TABLE}.caller_id, '|', ${TABLE}.query_id, '|', ${TABLE}.stage, '|', ${TABLE}.kind, '|', COALESCE(${TABLE}.metric, '')) ;;
  }

  dimension: run_id { hidden: yes }
  dimension: config_id { hidden: yes }
  dimension: query_id { hidden: yes }
  dimension: caller { description: "The configuration that made the call: the one that this is cut from, or that this fuses or reranks" }
  dimension: metric { description: "The judged metric that has no value" }
  dimension: attempts { hidden: no }
  dimension: experiment { hidden: yes }
  dimension: is_latest { hidden: yes }
  dimension: configuration { hidden: yes }
  dimension: caller_id { hidden: yes }
  dimension: derived_from { hidden: yes }
  dimension_group: started { hidden: yes }

  measure: failures {
    type: count
    description: "A call counts once for each configuration that needed it"
    drill_fields: [caller, stage, kind, message]
  }
}
