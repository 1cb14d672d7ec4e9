account_id     = 12345
host_url       = "https://ab123.us1.dbt.com/api"
repository_url = "git@github.com:you/millrace.git"

engine = "redshift"
redshift = {
  host     = "workgroup.123456789012.eu-central-1.redshift-serverless.amazonaws.com"
  database = "dev"
  user     = "dbt"
}
# engine = "spark"
# spark  = { host = "thrift.example.com", port = 10001 }

readers = "role:analyst"

# Once `dbt-jobs-as-code sync` has made the jobs:
# notify = { user_id = 678, email = "data@example.com" }
