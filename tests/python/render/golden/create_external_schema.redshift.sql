-- asks the engine:
create external schema if not exists bronze
from data catalog
database 'bronze'
region 'eu-central-1'
iam_role default

-- asks the engine:
select databasename from svv_external_schemas where schemaname = 'bronze'

-- asks the engine:
select count(*) as table_count from svv_external_tables where schemaname = 'bronze'
