project_name: "rankbeam"

constant: connection {
  value: "bigquery"
  export: override_required
}

# The dataset that `rankbeam warehouse apply` put the views into.
constant: dataset {
  value: "my-project.rankbeam"
  export: override_required
}
