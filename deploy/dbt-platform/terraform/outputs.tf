output "vars" {
  description = "For dbt-jobs-as-code: terraform output -raw vars > ../vars.yml"
  value = yamlencode({
    account_id                = var.account_id
    project_id                = tonumber(dbtcloud_project.millrace.id)
    production_environment_id = dbtcloud_environment.production.environment_id
    ci_environment_id         = dbtcloud_environment.ci.environment_id
    views_as                  = var.views_as
  })
}

output "deploy_key" {
  description = "The public key that may read the repository, where it is cloned by deploy key."
  value       = dbtcloud_repository.millrace.deploy_key
}

output "tunnel_key" {
  description = "The public key for the tunnel's user, where there is a tunnel."
  value       = try(dbtcloud_global_connection.redshift[0].redshift.ssh_tunnel.public_key, null)
}
