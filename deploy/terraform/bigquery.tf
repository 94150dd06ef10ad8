# The dataset and its access rights, which its tables (tables.tf) and views (views.tf) inherit.
resource "google_bigquery_dataset" "rankbeam" {
  dataset_id                 = var.dataset
  friendly_name              = "rankbeam"
  description                = "Results of retrieval evaluations. A run is finished once it has a row in runs."
  location                   = coalesce(var.bigquery_location, var.region)
  delete_contents_on_destroy = false

  depends_on = [google_project_service.used]
}

resource "google_bigquery_dataset_iam_member" "worker" {
  dataset_id = google_bigquery_dataset.rankbeam.dataset_id
  role       = "roles/bigquery.dataEditor"
  member     = google_service_account.worker.member
}

resource "google_bigquery_dataset_iam_member" "submitter" {
  for_each = var.submitters

  dataset_id = google_bigquery_dataset.rankbeam.dataset_id
  role       = "roles/bigquery.dataEditor" # submitters may also load results and apply views
  member     = each.key
}

resource "google_bigquery_dataset_iam_member" "reader" {
  for_each = var.readers

  dataset_id = google_bigquery_dataset.rankbeam.dataset_id
  role       = "roles/bigquery.dataViewer"
  member     = each.key
}
