"""`python -m spark_ingest`, and the script for `spark-submit`: the same as `spark-ingest`."""

from spark_ingest.cli import main

main()
