variable "project" {
  description = "The id of an existing project with a billing account."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "A project id has 6 to 30 lower-case letters, digits and hyphens."
  }
}

variable "region" {
  description = "The region of jobs, bucket, images and schedules."
  type        = string
  default     = "us-central1"
}

variable "bigquery_location" {
  description = "The location of the dataset: the region, or a multi-region that contains it (US, EU). Null: the region."
  type        = string
  default     = null
}

variable "bucket" {
  description = "Name of the bucket for data, experiments, results, templates and temporary files. Null: PROJECT-rankbeam."
  type        = string
  default     = null
}

variable "dataset" {
  description = "Name of the BigQuery dataset that results are loaded into."
  type        = string
  default     = "rankbeam"

  validation {
    condition     = can(regex("^[A-Za-z0-9_]+$", var.dataset))
    error_message = "A dataset's name has letters, digits and underscores."
  }
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete the tables. To destroy them, apply false first."
  type        = bool
  default     = true
}

variable "image_tag" {
  description = "Tag of the image and the template that schedules launch."
  type        = string
  default     = "latest"
}

variable "temporary_days" {
  description = "After how many days temporary and staged files are deleted. No job may run longer."
  type        = number
  default     = 14

  validation {
    condition     = var.temporary_days >= 7
    error_message = "Keep temporary files for at least 7 days: a batch job may run that long."
  }
}

variable "partition_days" {
  description = "After how many days BigQuery deletes a run from all tables, as `rankbeam warehouse apply --partition-days` does. Null: never."
  type        = number
  default     = null

  validation {
    condition     = var.partition_days == null ? true : var.partition_days >= 1
    error_message = "Partitions expire after at least one day; null keeps them."
  }
}

variable "soft_delete_days" {
  description = "For how many days deleted objects of the buckets, such as answers of a ledger, can be restored. 0: not at all."
  type        = number
  default     = 7

  validation {
    condition     = var.soft_delete_days == 0 || (var.soft_delete_days >= 7 && var.soft_delete_days <= 90)
    error_message = "Cloud Storage keeps deleted objects for 7 to 90 days, or for 0."
  }
}

variable "teams" {
  description = "Further teams, each with its own dataset, bucket and worker account. The key is part of their names."
  type = map(object({
    dataset    = optional(string)
    bucket     = optional(string)
    submitters = optional(set(string), [])
    readers    = optional(set(string), [])
    secrets    = optional(set(string), [])
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.teams) : name != "default" && can(regex("^[a-z]([a-z0-9-]{0,12}[a-z0-9])?$", name))])
    error_message = "A team's name has lower-case letters, digits and hyphens, with a letter first, and at most 14 of them; default is taken."
  }
}

variable "submitters" {
  description = "Who may submit jobs, as user:…, group:… or serviceAccount:…"
  type        = set(string)
  default     = []
}

variable "readers" {
  description = "Who may query results: people, groups, and the service account of Looker."
  type        = set(string)
  default     = []
}

variable "secrets" {
  description = "Ids of the secrets in this project that experiments name as $${secret:…}. Only these can be read."
  type        = set(string)
  default     = []
}

variable "subnetwork" {
  description = "Subnetwork of workers and of jobs on Cloud Run, as regions/REGION/subnetworks/NAME. Null: the network named default, and none on Cloud Run."
  type        = string
  default     = null
}

variable "public_ips" {
  description = "Whether workers have public addresses, and jobs on Cloud Run reach the internet without a network. False needs a subnetwork with Private Google Access, and Cloud NAT for services outside Google."
  type        = bool
  default     = true
}

variable "kms_key" {
  description = "Key of Cloud KMS that encrypts buckets, datasets, images, jobs and alerts' queries, in their location. Null: Google's keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "A key is projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY."
  }
}

variable "schedules" {
  description = "Experiments that run regularly. The key is part of the job's name, so a run never overlaps the previous one."
  type = map(object({
    cron        = string
    experiment  = string
    output      = optional(string)
    time_zone   = optional(string, "Etc/UTC")
    max_workers = optional(number, 4)
    paused      = optional(bool, false)
    team        = optional(string, "default")
    environment = optional(map(string), {})    # of dataflow: further keys of FlexTemplateRuntimeEnvironment
    engine      = optional(string, "dataflow") # or cloud_run, for small experiments
    cpu         = optional(string, "2")        # of cloud_run
    memory      = optional(string, "8Gi")      # of cloud_run
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.schedules) : can(regex("^[a-z]([a-z0-9-]{0,40}[a-z0-9])?$", name))])
    error_message = "A schedule's name has lower-case letters, digits and hyphens, with a letter first, and at most 42 of them."
  }

  validation {
    condition     = alltrue([for schedule in values(var.schedules) : startswith(schedule.experiment, "gs://")])
    error_message = "A schedule's experiment lies on gs://."
  }

  validation {
    condition     = alltrue([for schedule in values(var.schedules) : contains(["dataflow", "cloud_run"], schedule.engine)])
    error_message = "The engine of a schedule is dataflow or cloud_run."
  }

  validation {
    condition     = alltrue([for schedule in values(var.schedules) : schedule.engine == "dataflow" || length(schedule.environment) == 0])
    error_message = "Only schedules on Dataflow have an environment."
  }
}

variable "notification_channels" {
  description = "Names of the notification channels that alerts go to, as projects/PROJECT/notificationChannels/NUMBER."
  type        = list(string)
  default     = []
}

variable "alert_emails" {
  description = "Addresses that alerts go to, each through a notification channel that Terraform creates."
  type        = set(string)
  default     = []
}

variable "most_failed_calls" {
  description = "A job with more failed calls than this raises an alert."
  type        = number
  default     = 0
}

variable "alert_schedule" {
  description = "When the queries behind alerts about results run, as BigQuery writes schedules, in UTC. They look at runs that ended within a day before."
  type        = string
  default     = "every day 06:00"
}

variable "fresh_experiments" {
  description = "Experiments of each team, by the team's name, that must have a run with a value every fresh_hours. Others are not watched."
  type        = map(set(string))
  default     = {}
}

variable "fresh_hours" {
  description = "An experiment of fresh_experiments without a run that began within this many hours raises an alert."
  type        = number
  default     = 36
}

variable "most_cost_per_day" {
  description = "An experiment whose runs of one day cost more raises an alert, at the prices in the experiment. Null: no alert."
  type        = number
  default     = null
}

variable "labels" {
  description = "Further labels of all resources that can have them, for billing reports, besides application = \"rankbeam\"."
  type        = map(string)
  default     = {}
}
