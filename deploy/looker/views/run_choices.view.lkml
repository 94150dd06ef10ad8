# The runs that an explore shows: the latest by default. Explores of single runs join it, and always filter by is_chosen.
view: run_choices {
  extends: [run_choices_columns]

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

  dimension: run_id { primary_key: yes }
  dimension: has_values { description: "Not every call failed" }

  dimension: is_last_good {
    label: "Is last good run"
    description: "The last run of its experiment with any value"
  }

  measure: count {
    type: count
    drill_fields: [run_id, experiment, started_time]
  }
}
