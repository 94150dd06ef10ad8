terraform {
  required_version = ">= 1.5"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.50" # the schema that tests/packaging/test_terraform_schema.py checks these files against
    }
  }

  # A team stores its state in a bucket: deploy/README.md, step 2.
}

provider "google" {
  project = var.project
  region  = var.region

  default_labels = local.labels
}
