# The attributes of a query, unnested from queries.slices.
view: query_slices {
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
