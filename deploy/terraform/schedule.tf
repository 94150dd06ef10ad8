locals {
  labels = merge({ application = "rankbeam" }, var.labels)

  image    = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.rankbeam.repository_id}/rankbeam:${var.image_tag}"
  template = "gs://${google_storage_bucket.rankbeam["default"].name}/templates/rankbeam-${var.image_tag}.json"

  # Cloud Run names subnetworks of its own project without their region, and others by their full path.
  run_subnetworks = var.subnetwork == null ? [] : [replace(var.subnetwork, "/^(https:.*/v1/|regions/.*/)/", "")]

  on_dataflow  = { for name, schedule in var.schedules : name => schedule if schedule.engine == "dataflow" }
  on_cloud_run = { for name, schedule in var.schedules : name => schedule if schedule.engine == "cloud_run" }

  # The body of Dataflow's flexTemplates:launch. The job has the schedule's name: Dataflow refuses a second job of that
  # name while the first one runs, so two runs never spend one quota.
  launches = {
    for name, schedule in local.on_dataflow : name => {
      launchParameter = {
        jobName              = "rankbeam-${name}"
        containerSpecGcsPath = local.template
        parameters = merge(
          { experiment = schedule.experiment },
          schedule.output == null ? {} : { output = schedule.output },
        )
        environment = merge(
          {
            sdkContainerImage    = local.image
            serviceAccountEmail  = google_service_account.worker[schedule.team].email
            stagingLocation      = "gs://${google_storage_bucket.rankbeam[schedule.team].name}/staging"
            tempLocation         = "gs://${google_storage_bucket.rankbeam[schedule.team].name}/temp"
            maxWorkers           = schedule.max_workers
            ipConfiguration      = var.public_ips ? "WORKER_IP_PUBLIC" : "WORKER_IP_PRIVATE"
            additionalUserLabels = local.labels
          },
          var.subnetwork == null ? {} : { subnetwork = var.subnetwork },
          var.kms_key == null ? {} : { kmsKeyName = var.kms_key },
          schedule.environment,
        )
      }
    }
  }
}

resource "google_cloud_scheduler_job" "evaluation" {
  for_each = local.on_dataflow

  name             = "rankbeam-${each.key}"
  description      = "Evaluates ${each.value.experiment}"
  region           = var.region
  schedule         = each.value.cron
  time_zone        = each.value.time_zone
  paused           = each.value.paused
  attempt_deadline = "180s"

  retry_config {
    retry_count          = 2
    min_backoff_duration = "60s"
  }

  http_target {
    http_method = "POST"
    uri         = "https://dataflow.googleapis.com/v1b3/projects/${var.project}/locations/${var.region}/flexTemplates:launch"
    headers     = { "Content-Type" = "application/json" }
    body        = base64encode(jsonencode(local.launches[each.key]))

    oauth_token {
      service_account_email = google_service_account.scheduler.email
      scope                 = "https://www.googleapis.com/auth/cloud-platform"
    }
  }

  lifecycle {
    precondition {
      condition     = var.public_ips || var.subnetwork != null
      error_message = "Workers without public addresses need a subnetwork with Private Google Access."
    }
  }

  depends_on = [google_project_service.used]
}

# Small experiments need no cluster: rankbeam runs on Beam's local runner, in one container, with the same results. Two
# runs of one ledger take turns with its quotas (leases), so executions that overlap spend no quota twice.
resource "google_cloud_run_v2_job" "evaluation" {
  for_each = local.on_cloud_run

  name                = "rankbeam-${each.key}"
  location            = var.region
  deletion_protection = false # it holds nothing

  template {
    parallelism = 1
    task_count  = 1

    template {
      service_account = google_service_account.worker[each.value.team].email
      encryption_key  = var.kms_key
      max_retries     = 0 # a run that missed a gate ends with status 3, and would be repeated
      timeout         = "86400s"

      dynamic "vpc_access" {
        for_each = local.run_subnetworks

        content {
          egress = "ALL_TRAFFIC"

          network_interfaces {
            subnetwork = vpc_access.value
          }
        }
      }

      containers {
        image   = local.image
        command = ["rankbeam"]
        args = concat(
          ["evaluate", each.value.experiment],
          each.value.output == null ? [] : ["--output", each.value.output],
        )

        resources {
          limits = { cpu = each.value.cpu, memory = each.value.memory }
        }
      }
    }
  }

  lifecycle {
    precondition {
      condition     = var.public_ips || var.subnetwork != null
      error_message = "Jobs that may not use public addresses need a subnetwork with Private Google Access."
    }
  }

  depends_on = [google_project_service.used]
}

resource "google_cloud_run_v2_job_iam_member" "scheduler" {
  for_each = local.on_cloud_run

  name     = google_cloud_run_v2_job.evaluation[each.key].name
  location = var.region
  role     = "roles/run.invoker"
  member   = google_service_account.scheduler.member
}

resource "google_cloud_scheduler_job" "cloud_run" {
  for_each = local.on_cloud_run

  name             = "rankbeam-${each.key}"
  description      = "Evaluates ${each.value.experiment} on Cloud Run"
  region           = var.region
  schedule         = each.value.cron
  time_zone        = each.value.time_zone
  paused           = each.value.paused
  attempt_deadline = "180s"

  http_target {
    http_method = "POST"
    uri         = "https://run.googleapis.com/v2/${google_cloud_run_v2_job.evaluation[each.key].id}:run"

    oauth_token {
      service_account_email = google_service_account.scheduler.email
      scope                 = "https://www.googleapis.com/auth/cloud-platform"
    }
  }

  depends_on = [google_project_service.used]
}
