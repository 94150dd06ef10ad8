locals {
  bucket    = coalesce(var.bucket, "${var.project}-rankbeam")
  temporary = ["build/", "staging/", "temp/"]
  kms_keys  = var.kms_key == null ? [] : [var.kms_key]
}

resource "google_storage_bucket" "rankbeam" {
  for_each = local.teams

  name                        = each.value.bucket
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false # keep results when the other resources are destroyed

  dynamic "encryption" {
    for_each = local.kms_keys

    content {
      default_kms_key_name = encryption.value
    }
  }

  versioning {
    enabled = false # the ledger and the tables never change a file, they only add and delete
  }

  # Nobody can delete a soft-deleted object for good, not even an account that may delete objects, as workers may. Older
  # versions of objects are no such protection.
  soft_delete_policy {
    retention_duration_seconds = var.soft_delete_days * 86400
  }

  lifecycle_rule {
    condition {
      age            = var.temporary_days
      matches_prefix = local.temporary
    }
    action {
      type = "Delete"
    }
  }

  lifecycle_rule {
    condition {
      age = 1
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  depends_on = [google_project_service.used]
}

resource "google_artifact_registry_repository" "rankbeam" {
  repository_id = "rankbeam"
  location      = var.region
  format        = "DOCKER"
  description   = "Images of rankbeam, for launcher and workers."
  kms_key_name  = var.kms_key

  cleanup_policies {
    id     = "keep-the-last-ten"
    action = "KEEP"

    most_recent_versions {
      keep_count = 10
    }
  }

  cleanup_policies {
    id     = "delete-what-no-tag-names"
    action = "DELETE"

    condition {
      tag_state  = "UNTAGGED"
      older_than = "2592000s" # 30 days
    }
  }

  depends_on = [google_project_service.used]
}
