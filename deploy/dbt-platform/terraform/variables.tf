variable "account_id" {
  description = "The account: the number behind /accounts/ in the address of its pages."
  type        = number
}

variable "host_url" {
  description = "The API of your region, like https://ab123.us1.dbt.com/api."
  type        = string
}

variable "token" {
  description = "A service token that may administer the account: TF_VAR_token."
  type        = string
  sensitive   = true
}

variable "repository_url" {
  description = "Your clone of the project, like git@github.com:you/millrace.git."
  type        = string
}

variable "git" {
  description = <<-END
    How the platform clones it: github_app with its installation, deploy_token with a project of
    GitLab, or deploy_key, with which no pull request starts a job.
  END
  type = object({
    clone_strategy         = string
    github_installation_id = optional(number)
    gitlab_project_id      = optional(number)
  })
}

variable "dbt_version" {
  description = "A release track, or a version like 1.11.0-latest."
  type        = string
  default     = "compatible"
}

variable "engine" {
  description = "Where the models are built: redshift or spark."
  type        = string

  validation {
    condition     = contains(["redshift", "spark"], var.engine)
    error_message = "The engine is redshift or spark."
  }
}

variable "redshift" {
  description = "The cluster or workgroup; with `tunnel` through SSH."
  type = object({
    host     = string
    port     = optional(number, 5439)
    database = string
    user     = string
    tunnel = optional(object({
      host = string
      port = optional(number, 22)
      user = string
    }))
  })
  default = null

  validation {
    condition     = var.engine != "redshift" || var.redshift != null
    error_message = "The engine is redshift: say where it is."
  }
}

variable "redshift_password" {
  description = "The user's password: TF_VAR_redshift_password."
  type        = string
  default     = null
  ephemeral   = true
}

variable "spark" {
  description = "The Thrift server; auth is NOSASL or NONE, as the server has it."
  type = object({
    host = string
    port = optional(number, 10000)
    user = optional(string, "dbt")
    auth = optional(string, "NOSASL")
  })
  default = null

  validation {
    condition     = var.engine != "spark" || var.spark != null
    error_message = "The engine is spark: say where its Thrift server is."
  }
}

variable "spark_token" {
  description = "A token, which Thrift does not read and the platform asks for: TF_VAR_spark_token."
  type        = string
  default     = "none"
  ephemeral   = true
}

variable "secrets_version" {
  description = "Raise it when a secret changed: the platform then gets the new one."
  type        = number
  default     = 1
}

variable "views_as" {
  description = "DBT_VIEWS_AS: view, or ephemeral where the catalog has no views (AWS Glue)."
  type        = string
  default     = "view"
}

variable "readers" {
  description = "DBT_READERS: who may read marts and intermediate models, blanks between."
  type        = string
  default     = null
}

variable "notify" {
  description = <<-END
    Who gets notifications of jobs that fail, warn or are cancelled; set it once the jobs are synced.
    user_id is a user of the account, of Slack the one who set up its integration. A mail to that
    user replaces what the user has set up alone: import it first.
  END
  type = object({
    user_id            = number
    is_mailed          = optional(bool, false)
    email              = optional(string)
    slack_channel_id   = optional(string)
    slack_channel_name = optional(string)
  })
  default = null
}
