# The attributes of a query, unnested from query_changes.slices.
view: query_changes_slices {
  dimension: name {
    type: string
    label: "Attribute"
    sql: ${TABLE}.name ;;
  }

  dimension: value {
    type: string
    sql: ${TABLE}.value ;;
  }
}
