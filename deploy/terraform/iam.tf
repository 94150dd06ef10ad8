# Five kinds of accounts, each with the rights that its work needs. Roles on the whole project are only those that cannot be granted
# on less: to run jobs, queries and calls. Access to data is granted on the bucket, the dataset, the repository and single
# secrets.

locals {
  worker_roles = toset([
    "roles/aiplatform.user",          # RAG Engine
    "roles/bigquery.jobUser",         # load jobs and queries, without any data
    "roles/bigquery.readSessionUser", # the Storage Read API, without any data
    "roles/dataflow.worker",
    "roles/discoveryengine.viewer", # Vertex AI Search
  ])

  submitter_roles = toset([
    "roles/aiplatform.user", # corpora of RAG Engine are built where a job is submitted
    "roles/bigquery.jobUser",
    "roles/bigquery.readSessionUser", # inputs are checked, and results read, through the Storage Read API
    "roles/dataflow.developer",
    "roles/monitoring.viewer", # counters of running jobs
  ])

  submitter_grants = {
    for pair in setproduct(local.all_submitters, local.submitter_roles) : join(" ", pair) => { member = pair[0], role = pair[1] }
  }
}

resource "google_service_account" "worker" {
  for_each = local.teams

  account_id   = each.key == "default" ? "rankbeam-worker" : "rankbeam-worker-${each.key}"
  display_name = "rankbeam: workers and launchers of Dataflow jobs"

  depends_on = [google_project_service.used]
}

resource "google_service_account" "scheduler" {
  account_id   = "rankbeam-scheduler"
  display_name = "rankbeam: launches the template on schedule"

  depends_on = [google_project_service.used]
}

resource "google_service_account" "builder" {
  account_id   = "rankbeam-builder"
  display_name = "rankbeam: builds the image"

  depends_on = [google_project_service.used]
}

# The worker.

resource "google_project_iam_member" "worker" {
  for_each = local.team_worker_roles

  project = var.project
  role    = each.value.role
  member  = google_service_account.worker[each.value.team].member
}

resource "google_storage_bucket_iam_member" "worker" {
  for_each = local.teams

  bucket = google_storage_bucket.rankbeam[each.key].name
  role   = "roles/storage.objectAdmin"
  member = google_service_account.worker[each.key].member
}

resource "google_artifact_registry_repository_iam_member" "worker" {
  for_each = local.teams

  repository = google_artifact_registry_repository.rankbeam.name
  location   = google_artifact_registry_repository.rankbeam.location
  role       = "roles/artifactregistry.reader"
  member     = google_service_account.worker[each.key].member
}

resource "google_secret_manager_secret_iam_member" "worker" {
  for_each = local.team_secrets

  secret_id = each.value.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.worker[each.value.team].member

  depends_on = [google_project_service.used]
}

# The scheduler: launches jobs that run as the worker, and reads the template's file.

resource "google_project_iam_member" "scheduler" {
  project = var.project
  role    = "roles/dataflow.developer"
  member  = google_service_account.scheduler.member
}

resource "google_service_account_iam_member" "scheduler_runs_as_worker" {
  for_each = local.teams

  service_account_id = google_service_account.worker[each.key].name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.scheduler.member
}

resource "google_storage_bucket_iam_member" "scheduler" {
  bucket = google_storage_bucket.rankbeam["default"].name
  role   = "roles/storage.objectViewer"
  member = google_service_account.scheduler.member

  condition {
    title      = "templates"
    expression = "resource.name.startsWith(\"projects/_/buckets/${google_storage_bucket.rankbeam["default"].name}/objects/templates/\")"
  }
}

# The builder: Cloud Build runs as this account, not as an account of the project with wider rights.

resource "google_project_iam_member" "builder" {
  project = var.project
  role    = "roles/logging.logWriter"
  member  = google_service_account.builder.member
}

resource "google_artifact_registry_repository_iam_member" "builder" {
  repository = google_artifact_registry_repository.rankbeam.name
  location   = google_artifact_registry_repository.rankbeam.location
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.builder.member
}

resource "google_storage_bucket_iam_member" "builder" {
  bucket = google_storage_bucket.rankbeam["default"].name
  role   = "roles/storage.objectViewer"
  member = google_service_account.builder.member

  condition {
    title      = "uploaded sources"
    expression = "resource.name.startsWith(\"projects/_/buckets/${google_storage_bucket.rankbeam["default"].name}/objects/build/\")"
  }
}

# People and CI that submit jobs, and readers.

resource "google_project_iam_member" "submitter" {
  for_each = local.submitter_grants

  project = var.project
  role    = each.value.role
  member  = each.value.member
}

resource "google_service_account_iam_member" "submitter_runs_as_worker" {
  for_each = local.team_submitters

  service_account_id = google_service_account.worker[each.value.team].name
  role               = "roles/iam.serviceAccountUser"
  member             = each.value.member
}

resource "google_storage_bucket_iam_member" "submitter" {
  for_each = local.team_submitters

  bucket = google_storage_bucket.rankbeam[each.value.team].name
  role   = "roles/storage.objectAdmin"
  member = each.value.member
}

resource "google_artifact_registry_repository_iam_member" "submitter" {
  for_each = local.all_submitters

  repository = google_artifact_registry_repository.rankbeam.name
  location   = google_artifact_registry_repository.rankbeam.location
  role       = "roles/artifactregistry.reader"
  member     = each.key
}

resource "google_project_iam_member" "reader" {
  for_each = local.all_readers

  project = var.project
  role    = "roles/bigquery.jobUser"
  member  = each.key
}

# Commands such as `rankbeam report bigquery://…` read through the Storage Read API.
resource "google_project_iam_member" "reader_sessions" {
  for_each = local.all_readers

  project = var.project
  role    = "roles/bigquery.readSessionUser"
  member  = each.key
}

# The alerts: scheduled queries over results, which read the datasets.

resource "google_service_account" "alerts" {
  account_id   = "rankbeam-alerts"
  display_name = "rankbeam: queries results for alerts"

  depends_on = [google_project_service.used]
}

resource "google_project_iam_member" "alerts" {
  project = var.project
  role    = "roles/bigquery.jobUser"
  member  = google_service_account.alerts.member
}

resource "google_bigquery_dataset_iam_member" "alerts" {
  for_each = local.teams

  dataset_id = google_bigquery_dataset.rankbeam[each.key].dataset_id
  role       = "roles/bigquery.dataViewer"
  member     = google_service_account.alerts.member
}
