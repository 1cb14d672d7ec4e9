"""What Airflow makes of our DAGs, as JSON: run by the Python of Airflow's own environment."""

from __future__ import annotations

import json
import sys

from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
print(
    json.dumps(
        {
            "errors": bag.import_errors,
            "dags": [
                {
                    "id": dag.dag_id,
                    "description": dag.description,
                    "tags": sorted(dag.tags),
                    "schedule": dag.schedule,
                    "seconds": dag.dagrun_timeout.total_seconds(),
                    "shows": [
                        reported.__name__
                        for reported in (dag.on_failure_callback, dag.on_success_callback)
                        if reported
                    ],
                    "tasks": [
                        {
                            "command": task.bash_command,
                            "owner": task.owner,
                            "retries": task.retries,
                            "email": task.email,
                            "after": sorted(task.upstream_task_ids),
                        }
                        for task in dag.tasks
                    ],
                }
                for dag in bag.dags.values()
            ],
        }
    )
)
