# dbt-jobs-as-code makes the jobs: an apply after `sync` finds them.
data "dbtcloud_jobs" "production" {
  environment_id = dbtcloud_environment.production.environment_id
}

locals {
  job_ids = [for job in data.dbtcloud_jobs.production.jobs : job.id]
  # The platform's number of each type of notification.
  ways = var.notify == null ? {} : merge(
    var.notify.is_mailed ? { user = 1 } : {},
    var.notify.slack_channel_id == null ? {} : { slack = 2 },
    var.notify.email == null ? {} : { email = 4 },
  )
}

resource "dbtcloud_notification" "all" {
  for_each = local.ways

  user_id            = var.notify.user_id
  notification_type  = each.value
  on_failure         = local.job_ids
  on_cancel          = local.job_ids
  on_warning         = local.job_ids
  external_email     = each.key == "email" ? var.notify.email : null
  slack_channel_id   = each.key == "slack" ? var.notify.slack_channel_id : null
  slack_channel_name = each.key == "slack" ? var.notify.slack_channel_name : null
}
