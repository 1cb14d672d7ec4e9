# One connection, of the engine that was chosen; credentials for each environment, because the
# schema is part of them.
locals {
  schemas = { production = "analytics", ci = "ci" }

  connection_id = one(concat(
    dbtcloud_global_connection.redshift[*].id,
    dbtcloud_global_connection.spark[*].id,
  ))
  extended_attributes_id = one(dbtcloud_extended_attributes.redshift[*].extended_attributes_id)
  credential_ids = merge(
    { for name, made in dbtcloud_redshift_credential.all : name => made.credential_id },
    { for name, made in dbtcloud_spark_credential.all : name => made.credential_id },
  )
}

resource "dbtcloud_global_connection" "redshift" {
  count = var.engine == "redshift" ? 1 : 0

  name = "Redshift"
  redshift = {
    hostname = var.redshift.host
    port     = var.redshift.port
    dbname   = var.redshift.database
    ssh_tunnel = var.redshift.tunnel == null ? null : {
      hostname = var.redshift.tunnel.host
      port     = var.redshift.tunnel.port
      username = var.redshift.tunnel.user
    }
  }
}

# What profiles/profiles.yml says beside host and user.
resource "dbtcloud_extended_attributes" "redshift" {
  count = var.engine == "redshift" ? 1 : 0

  project_id = dbtcloud_project.millrace.id
  extended_attributes = jsonencode({
    ra3_node    = true
    query_group = "millrace"
    sslmode     = var.redshift.tunnel == null ? "verify-full" : "verify-ca"
  })
}

resource "dbtcloud_redshift_credential" "all" {
  for_each = var.engine == "redshift" ? local.schemas : {}

  project_id          = dbtcloud_project.millrace.id
  default_schema      = each.value
  num_threads         = 4
  username            = var.redshift.user
  password_wo         = var.redshift_password
  password_wo_version = var.secrets_version
}

resource "dbtcloud_global_connection" "spark" {
  count = var.engine == "spark" ? 1 : 0

  name = "Spark"
  apache_spark = {
    method = "thrift"
    host   = var.spark.host
    port   = var.spark.port
    user   = var.spark.user
    auth   = var.spark.auth
    # The provider asks for it; Thrift has none.
    cluster         = "none"
    connect_timeout = 30
    connect_retries = 3
  }
}

resource "dbtcloud_spark_credential" "all" {
  for_each = var.engine == "spark" ? local.schemas : {}

  project_id       = dbtcloud_project.millrace.id
  schema           = each.value
  token_wo         = var.spark_token
  token_wo_version = var.secrets_version
}
