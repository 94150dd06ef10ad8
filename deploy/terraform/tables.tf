# The tables that rankbeam writes, so that the views can be created before the first run. schemas/ is generated from the
# schemas of rankbeam's records by `make deploy-files`, and a test compares the two.
locals {
  schemas = {
    for name in fileset("${path.module}/schemas", "*.json") : trimsuffix(name, ".json") => file("${path.module}/schemas/${name}")
  }

  clustering = {
    for name, schema in local.schemas : name => [
      for column in ["run_id", "experiment", "config_id"] : column if contains(jsondecode(schema)[*].name, column)
    ]
  }
}

resource "google_bigquery_table" "tables" {
  for_each = local.team_tables

  dataset_id          = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  table_id            = each.value.name
  schema              = local.schemas[each.value.name]
  clustering          = local.clustering[each.value.name]
  deletion_protection = var.deletion_protection

  time_partitioning {
    type          = "DAY"
    field         = "started_at"
    expiration_ms = local.partition_ms
  }

  lifecycle {
    ignore_changes = [schema] # a later rankbeam adds nullable columns itself
  }
}
