output "bucket" {
  description = "Data, experiments, results, templates and temporary files."
  value       = google_storage_bucket.rankbeam["default"].url
}

output "dataset" {
  description = "The dataset for output.bigquery in experiments."
  value       = "${var.project}.${google_bigquery_dataset.rankbeam["default"].dataset_id}"
}

output "image" {
  description = "The image to build."
  value       = local.image
}

output "template" {
  description = "The file of the template."
  value       = local.template
}

output "worker" {
  description = "The service account of workers, for --service_account_email."
  value       = google_service_account.worker["default"].email
}

output "builder" {
  description = "The service account of Cloud Build."
  value       = google_service_account.builder.id
}
