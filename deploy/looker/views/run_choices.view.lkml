# The runs that an explore shows: the latest by default. Explores of single runs join it, and always filter by is_chosen.
view: run_choices {
  sql_table_name: `@{dataset}.run_choices` ;;

  filter: run {
    type: string
    description: "latest, last good (the last run with any value), or the id of a run"
    suggest_dimension: run_id
  }

  dimension: is_chosen {
    type: yesno
    hidden: yes
    sql: ({% condition run %} ${TABLE}.run_id {% endcondition %}
      OR ({% condition run %} 'latest' {% endcondition %} AND ${TABLE}.is_latest)
      OR ({% condition run %} 'last good' {% endcondition %} AND ${TABLE}.is_last_good)) ;;
  }

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

  dimension: is_latest {
    type: yesno
    label: "Is latest run"
    description: "The latest run of its experiment"
    sql: ${TABLE}.is_latest ;;
  }

  dimension: has_values {
    type: yesno
    description: "Not every call failed"
    sql: ${TABLE}.has_values ;;
  }

  dimension: is_last_good {
    type: yesno
    label: "Is last good run"
    description: "The last run of its experiment with any value"
    sql: ${TABLE}.is_last_good ;;
  }

  measure: count {
    type: count
    drill_fields: [run_id, experiment, started_time]
  }
}
