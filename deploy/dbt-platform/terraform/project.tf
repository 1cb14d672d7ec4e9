resource "dbtcloud_project" "millrace" {
  name = "Millrace"
}

resource "dbtcloud_repository" "millrace" {
  project_id             = dbtcloud_project.millrace.id
  remote_url             = var.repository_url
  git_clone_strategy     = var.git.clone_strategy
  github_installation_id = var.git.github_installation_id
  gitlab_project_id      = var.git.gitlab_project_id
}

resource "dbtcloud_project_repository" "millrace" {
  project_id    = dbtcloud_project.millrace.id
  repository_id = dbtcloud_repository.millrace.repository_id
}

resource "dbtcloud_environment" "development" {
  project_id             = dbtcloud_project.millrace.id
  name                   = "Development"
  type                   = "development"
  dbt_version            = var.dbt_version
  connection_id          = local.connection_id
  extended_attributes_id = local.extended_attributes_id
}

resource "dbtcloud_environment" "production" {
  project_id             = dbtcloud_project.millrace.id
  name                   = "Production"
  type                   = "deployment"
  deployment_type        = "production"
  dbt_version            = var.dbt_version
  connection_id          = local.connection_id
  credential_id          = local.credential_ids["production"]
  extended_attributes_id = local.extended_attributes_id
}

# Its jobs write to schemas of their own, dbt_cloud_pr_<job>_<pull request>_marts and the like.
resource "dbtcloud_environment" "ci" {
  project_id             = dbtcloud_project.millrace.id
  name                   = "CI"
  type                   = "deployment"
  dbt_version            = var.dbt_version
  connection_id          = local.connection_id
  credential_id          = local.credential_ids["ci"]
  extended_attributes_id = local.extended_attributes_id
}

# Jobs may set them again: see jobs.yml.
resource "dbtcloud_environment_variable" "all" {
  for_each = merge(
    { DBT_VIEWS_AS = var.views_as },
    var.readers == null ? {} : { DBT_READERS = var.readers },
  )

  project_id         = dbtcloud_project.millrace.id
  name               = each.key
  environment_values = { project = each.value }

  depends_on = [
    dbtcloud_environment.development,
    dbtcloud_environment.production,
    dbtcloud_environment.ci,
  ]
}
