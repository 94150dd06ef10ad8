# Each team has a dataset, a bucket and a worker account of its own, and all share the image, the template, the alerts'
# channels and the ledger. The default team is that of the variables dataset, bucket, submitters, readers and secrets.
# Keys of its resources are those of earlier versions, which knew one team only.
locals {
  teams = merge(
    {
      default = {
        bucket     = local.bucket
        dataset    = var.dataset
        submitters = var.submitters
        readers    = var.readers
        secrets    = var.secrets
      }
    },
    {
      for name, settings in var.teams : name => {
        bucket     = coalesce(settings.bucket, "${local.bucket}-${name}")
        dataset    = coalesce(settings.dataset, "${var.dataset}_${replace(name, "-", "_")}")
        submitters = settings.submitters
        readers    = settings.readers
        secrets    = settings.secrets
      }
    },
  )

  other_teams = { for name, settings in local.teams : name => settings if name != "default" }
  prefixes    = { for name in keys(local.teams) : name => name == "default" ? "" : "${name}/" }

  all_submitters = toset(flatten([for settings in local.teams : tolist(settings.submitters)]))
  all_readers    = toset(flatten([for settings in local.teams : tolist(settings.readers)]))

  # Pairs of a team and something of it, by the key of a resource.
  team_submitters   = merge([for team, settings in local.teams : { for member in settings.submitters : "${local.prefixes[team]}${member}" => { team = team, member = member } }]...)
  team_readers      = merge([for team, settings in local.teams : { for member in settings.readers : "${local.prefixes[team]}${member}" => { team = team, member = member } }]...)
  team_secrets      = merge([for team, settings in local.teams : { for secret in settings.secrets : "${local.prefixes[team]}${secret}" => { team = team, secret = secret } }]...)
  team_worker_roles = merge([for team in keys(local.teams) : { for role in local.worker_roles : "${local.prefixes[team]}${role}" => { team = team, role = role } }]...)
  team_tables       = merge([for team in keys(local.teams) : { for name in keys(local.schemas) : "${local.prefixes[team]}${name}" => { team = team, name = name } }]...)
  team_views        = [for level in local.view_levels : merge([for team in keys(local.teams) : { for name in level : "${local.prefixes[team]}${name}" => { team = team, name = name } }]...)]
}

# The ledger that experiments of all teams may share: gs://BUCKET/ledger of the default team's bucket. An answer that one
# team has paid for costs the others nothing, and runs that share it take turns with a quota (docs/teams.md).
resource "google_storage_managed_folder" "ledger" {
  bucket = google_storage_bucket.rankbeam["default"].name
  name   = "ledger/"
}

resource "google_storage_managed_folder_iam_member" "ledger_worker" {
  for_each = local.other_teams

  bucket         = google_storage_bucket.rankbeam["default"].name
  managed_folder = google_storage_managed_folder.ledger.name
  role           = "roles/storage.objectUser"
  member         = google_service_account.worker[each.key].member
}

resource "google_storage_managed_folder_iam_member" "ledger_submitter" {
  for_each = { for key, pair in local.team_submitters : key => pair if pair.team != "default" }

  bucket         = google_storage_bucket.rankbeam["default"].name
  managed_folder = google_storage_managed_folder.ledger.name
  role           = "roles/storage.objectUser"
  member         = each.value.member
}

# Earlier versions knew one team. What they created stays, and belongs to the default team.
moved {
  from = google_bigquery_dataset.rankbeam
  to   = google_bigquery_dataset.rankbeam["default"]
}

moved {
  from = google_bigquery_dataset_iam_member.worker
  to   = google_bigquery_dataset_iam_member.worker["default"]
}

moved {
  from = google_storage_bucket.rankbeam
  to   = google_storage_bucket.rankbeam["default"]
}

moved {
  from = google_storage_bucket_iam_member.worker
  to   = google_storage_bucket_iam_member.worker["default"]
}

moved {
  from = google_service_account.worker
  to   = google_service_account.worker["default"]
}

moved {
  from = google_service_account_iam_member.scheduler_runs_as_worker
  to   = google_service_account_iam_member.scheduler_runs_as_worker["default"]
}

moved {
  from = google_artifact_registry_repository_iam_member.worker
  to   = google_artifact_registry_repository_iam_member.worker["default"]
}
