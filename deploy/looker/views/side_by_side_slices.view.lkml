# The attributes of a query, unnested from side_by_side.slices.
view: side_by_side_slices {
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
