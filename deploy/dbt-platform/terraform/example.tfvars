account_id     = 12345
host_url       = "https://ab123.us1.dbt.com/api"
repository_url = "git@github.com:you/millrace.git"
git            = { clone_strategy = "github_app", github_installation_id = 9876 }

engine = "redshift"
redshift = {
  host     = "workgroup.123456789012.eu-central-1.redshift-serverless.amazonaws.com"
  database = "dev"
  user     = "millrace"
}
# engine = "spark"
# spark  = { host = "thrift.example.com", port = 10000 }

readers = "role:analyst"

# Once `dbt-jobs-as-code sync` has made the jobs:
# notify = { user_id = 678, email = "data@example.com" }
