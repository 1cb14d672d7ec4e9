terraform {
  # Secrets are write-only: no state holds them.
  required_version = ">= 1.11"

  required_providers {
    dbtcloud = {
      source  = "dbt-labs/dbtcloud"
      version = "~> 1.12"
    }
  }
}

provider "dbtcloud" {
  account_id = var.account_id
  host_url   = var.host_url
  token      = var.token
}
