# How far back explores read. Their tables are derived in columns.view.lkml, each with this bound.
view: horizon {
  parameter: days {
    type: number
    label: "Days back"
    description: "Read only runs that began within so many days; a previous run that is older is as if it were not there"
    default_value: "90"
  }
}
