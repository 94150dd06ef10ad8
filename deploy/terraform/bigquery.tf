# The dataset and its access rights, which its tables (tables.tf) and views (views.tf) inherit.
locals {
  partition_ms = var.partition_days == null ? null : var.partition_days * 86400000
}

resource "google_bigquery_dataset" "rankbeam" {
  for_each = local.teams

  dataset_id                      = each.value.dataset
  friendly_name                   = "rankbeam"
  description                     = "Results of retrieval evaluations. A run is finished once it has a row in runs."
  location                        = coalesce(var.bigquery_location, var.region)
  delete_contents_on_destroy      = false
  default_partition_expiration_ms = local.partition_ms # for tables that a later rankbeam creates

  dynamic "default_encryption_configuration" {
    for_each = local.kms_keys

    content {
      kms_key_name = default_encryption_configuration.value
    }
  }

  depends_on = [google_project_service.used]
}

resource "google_bigquery_dataset_iam_member" "worker" {
  for_each = local.teams

  dataset_id = google_bigquery_dataset.rankbeam[each.key].dataset_id
  role       = "roles/bigquery.dataEditor"
  member     = google_service_account.worker[each.key].member
}

resource "google_bigquery_dataset_iam_member" "submitter" {
  for_each = local.team_submitters

  dataset_id = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  role       = "roles/bigquery.dataEditor" # submitters may also load results and apply views
  member     = each.value.member
}

resource "google_bigquery_dataset_iam_member" "reader" {
  for_each = local.team_readers

  dataset_id = google_bigquery_dataset.rankbeam[each.value.team].dataset_id
  role       = "roles/bigquery.dataViewer"
  member     = each.value.member
}
