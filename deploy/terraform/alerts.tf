locals {
  jobs     = "resource.type = \"dataflow_job\" AND resource.label.\"job_name\" = starts_with(\"rankbeam\")"
  channels = concat(var.notification_channels, [for channel in google_monitoring_notification_channel.email : channel.name])
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.alert_emails

  display_name = "rankbeam: ${each.key}"
  type         = "email"
  labels       = { email_address = each.key }

  depends_on = [google_project_service.used]
}

# A job that has ended sends no more values. Its incident would stay open for a week, and hide the next job of its name,
# so policies close it after an hour.
resource "google_monitoring_alert_policy" "failed_job" {
  display_name          = "rankbeam: a job failed"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = local.channels

  conditions {
    display_name = "A Dataflow job failed"

    condition_threshold {
      filter          = "metric.type = \"dataflow.googleapis.com/job/is_failed\" AND ${local.jobs}"
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"

      aggregations {
        alignment_period   = "300s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  alert_strategy {
    auto_close = "3600s"
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "rankbeam: job $${resource.label.job_name} failed"
    content   = "Its answers are in the ledger: the same command continues from there. Causes: deploy/README.md, Troubleshooting."
  }

  depends_on = [google_project_service.used]
}

resource "google_monitoring_alert_policy" "failed_calls" {
  display_name          = "rankbeam: calls failed"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = local.channels

  conditions {
    display_name = "More than ${var.most_failed_calls} calls of a job failed"

    condition_threshold {
      filter          = "metric.type = \"dataflow.googleapis.com/job/user_counter\" AND metric.label.\"metric_name\" = \"calls_failed\" AND ${local.jobs}"
      comparison      = "COMPARISON_GT"
      threshold_value = var.most_failed_calls
      duration        = "0s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_MAX"
        cross_series_reducer = "REDUCE_MAX"
        group_by_fields      = ["resource.label.job_name"]
      }
    }
  }

  alert_strategy {
    auto_close = "3600s"
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "rankbeam: calls of $${resource.label.job_name} failed"
    content   = "The table failures says which calls, and why. Means have a lowest and a highest possible value."
  }

  depends_on = [google_project_service.used]
}

resource "google_monitoring_alert_policy" "missed_limit" {
  display_name          = "rankbeam: a run misses a limit"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = local.channels

  conditions {
    display_name = "A run misses a gate, or its max_failure_rate"

    condition_threshold {
      filter          = "metric.type = \"dataflow.googleapis.com/job/user_counter\" AND metric.label.\"metric_name\" = \"runs_that_miss_a_limit\" AND ${local.jobs}"
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_MAX"
        cross_series_reducer = "REDUCE_MAX"
        group_by_fields      = ["resource.label.job_name"]
      }
    }
  }

  alert_strategy {
    auto_close = "3600s"
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "rankbeam: the run of $${resource.label.job_name} misses a limit"
    content   = "The table gates says which gate of which configuration, and by how much; the run's warnings have the failures."
  }

  depends_on = [google_project_service.used]
}

# A launch that Dataflow refuses creates no job and no metric: only the scheduler's log has it.
resource "google_monitoring_alert_policy" "failed_launch" {
  count = length(var.schedules) > 0 ? 1 : 0

  display_name          = "rankbeam: a schedule could not launch"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = local.channels

  conditions {
    display_name = "Cloud Scheduler was refused"

    condition_matched_log {
      filter = "resource.type = \"cloud_scheduler_job\" AND resource.labels.job_id =~ \"^rankbeam-\" AND severity >= ERROR"
    }
  }

  alert_strategy {
    auto_close = "86400s"

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Usually the previous run has not ended, or the template is missing: deploy/README.md, Troubleshooting."
  }

  depends_on = [google_project_service.used]
}

# Alerts about results: scheduled queries over the tables, which fail if they find a reason, with the reasons as their error.
# The log of BigQuery's transfer service has it, and a log-based policy sends it on.
locals {
  alert_settings = {
    for team, settings in local.teams : team => {
      fresh_run   = { project = var.project, dataset = settings.dataset, hours = var.fresh_hours, experiments = jsonencode(lookup(var.fresh_experiments, team, [])) }
      cost        = { project = var.project, dataset = settings.dataset, most_cost = coalesce(var.most_cost_per_day, 0) }
      regressions = { project = var.project, dataset = settings.dataset }
      monitor     = { project = var.project, dataset = settings.dataset }
    }
  }

  alert_queries = merge([
    for team, queries in local.alert_settings : {
      for name, settings in queries : "${local.prefixes[team]}${name}" => {
        team  = team
        name  = name
        query = "SELECT IF(COUNT(*) = 0, 'nothing to report', ERROR(STRING_AGG(message, '; '))) AS report\nFROM (\n${templatefile("${path.module}/alerts/${name}.sql", settings)})\n"
      }
      if !(name == "fresh_run" && length(lookup(var.fresh_experiments, team, [])) == 0) && !(name == "cost" && var.most_cost_per_day == null)
    }
  ]...)
}

resource "google_bigquery_data_transfer_config" "alerts" {
  for_each = local.alert_queries

  display_name         = "rankbeam alert ${each.key}"
  data_source_id       = "scheduled_query"
  location             = google_bigquery_dataset.rankbeam[each.value.team].location
  schedule             = var.alert_schedule
  service_account_name = google_service_account.alerts.email
  params               = { query = each.value.query }

  dynamic "encryption_configuration" {
    for_each = local.kms_keys

    content {
      kms_key_name = encryption_configuration.value
    }
  }

  lifecycle {
    precondition {
      condition     = length(setsubtract(keys(var.fresh_experiments), keys(local.teams))) == 0
      error_message = "fresh_experiments names teams that do not exist: ${join(", ", setsubtract(keys(var.fresh_experiments), keys(local.teams)))}. The teams are ${join(", ", keys(local.teams))}."
    }
  }

  depends_on = [google_bigquery_dataset_iam_member.alerts, google_project_iam_member.alerts, google_bigquery_table.tables]
}

resource "google_monitoring_alert_policy" "results" {
  for_each = local.alert_queries

  display_name          = "rankbeam: ${each.key}"
  combiner              = "OR"
  severity              = each.value.name == "fresh_run" ? "ERROR" : "WARNING"
  notification_channels = local.channels

  conditions {
    display_name = "The scheduled query found a reason"

    condition_matched_log {
      filter           = "resource.type = \"bigquery_dts_config\" AND resource.labels.config_id = \"${element(split("/", google_bigquery_data_transfer_config.alerts[each.key].name), -1)}\" AND severity >= ERROR"
      label_extractors = { reason = "EXTRACT(jsonPayload.message)" }
    }
  }

  alert_strategy {
    auto_close = "86400s"

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "$${log.extracted_label.reason}"
  }

  depends_on = [google_project_service.used]
}
