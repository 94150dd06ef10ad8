locals {
  jobs     = "resource.type = \"dataflow_job\" AND resource.label.\"job_name\" = starts_with(\"rankbeam\")"
  channels = concat(var.notification_channels, [for each in google_monitoring_notification_channel.email : each.name])
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.alert_emails

  display_name = "rankbeam: ${each.key}"
  type         = "email"
  labels       = { email_address = each.key }

  depends_on = [google_project_service.used]
}

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
