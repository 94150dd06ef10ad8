locals {
  image    = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.rankbeam.repository_id}/rankbeam:${var.image_tag}"
  template = "gs://${google_storage_bucket.rankbeam.name}/templates/rankbeam-${var.image_tag}.json"

  # The body of Dataflow's flexTemplates:launch. The job has the schedule's name: Dataflow refuses a second job of that
  # name while the first one runs, so two runs never spend one quota.
  launches = {
    for name, each in var.schedules : name => {
      launchParameter = {
        jobName              = "rankbeam-${name}"
        containerSpecGcsPath = local.template
        parameters = merge(
          { experiment = each.experiment },
          each.output == null ? {} : { output = each.output },
        )
        environment = merge(
          {
            sdkContainerImage    = local.image
            serviceAccountEmail  = google_service_account.worker.email
            stagingLocation      = "gs://${google_storage_bucket.rankbeam.name}/staging"
            tempLocation         = "gs://${google_storage_bucket.rankbeam.name}/temp"
            maxWorkers           = each.max_workers
            ipConfiguration      = var.public_ips ? "WORKER_IP_PUBLIC" : "WORKER_IP_PRIVATE"
            additionalUserLabels = var.labels
          },
          var.subnetwork == null ? {} : { subnetwork = var.subnetwork },
        )
      }
    }
  }
}

resource "google_cloud_scheduler_job" "evaluation" {
  for_each = var.schedules

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
