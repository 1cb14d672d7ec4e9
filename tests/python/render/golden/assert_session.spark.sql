-- asks the engine:
select version()

-- asks the engine:
set spark.sql.session.timeZone

-- asks the engine:
set spark.millrace.home
