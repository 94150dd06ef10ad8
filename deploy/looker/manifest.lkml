project_name: "rankbeam"

constant: connection {
  value: "bigquery"
  export: override_required
}

# The dataset with the views of `rankbeam warehouse apply`.
constant: dataset {
  value: "my-project.rankbeam"
  export: override_required
}
