-- Redshift's system views, as far as its dbt adapter and our macros read them. Columns of
-- late-binding views and external tables are not in the information schema, as there.

create view pg_catalog.svv_external_schemas as
select schema_name as schemaname, database_name as databasename from rs.external_schemas;

create view pg_catalog.svv_external_tables as
select schema_name as schemaname, table_name as tablename, 'lake'::text as location
from rs.external_tables;

create view pg_catalog.svv_external_columns as
select
    schema_name as schemaname, table_name as tablename, attname as columnname,
    format_type(atttypid, atttypmod) as external_type, attnum::integer as columnnum,
    0 as part_key
from rs.external_tables
join pg_attribute
    on attrelid = format('%I.%I', schema_name, table_name)::regclass and attnum > 0;

create view rs.information_columns as
select columns.*
from information_schema.columns
join pg_class on pg_class.oid = format('%I.%I', table_schema, table_name)::regclass
where relkind <> 'f' and pg_class.oid not in (select view_oid from rs_views.late_binding);

create view pg_catalog.svv_redshift_columns as
select
    current_database()::text as database_name, nspname::text as schema_name,
    relname::text as table_name, attname::text as column_name,
    attnum::integer as ordinal_position, format_type(atttypid, atttypmod) as data_type,
    col_description(pg_class.oid, attnum) as remarks
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
where relkind in ('r', 'v', 'm');

create view pg_catalog.svv_table_info as
select
    current_database()::text as "database", nspname::text as "schema",
    pg_class.oid::integer as table_id, relname::text as "table", 'Y'::text as encoded,
    coalesce(diststyle, 'AUTO') as diststyle, sort_keys[1] as sortkey1, 0 as max_varchar,
    null::text as sortkey1_enc, coalesce(cardinality(sort_keys), 0) as sortkey_num,
    pg_total_relation_size(pg_class.oid) / 1048576 as size, 0.0 as pct_used,
    null::numeric as unsorted, 0.0 as stats_off,
    greatest(reltuples, 0)::numeric as tbl_rows,
    null::numeric as skew_sortkey1, null::numeric as skew_rows
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
left join rs.table_attributes on table_oid = pg_class.oid
where relkind = 'r';

create view pg_catalog.svv_relation_privileges as
select
    nspname as namespace_name, relname as relation_name,
    grantee::regrole::text as identity_name,
    case when rolcanlogin then 'user' else 'role' end as identity_type, privilege_type
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
cross join lateral aclexplode(relacl)
join pg_roles on pg_roles.oid = grantee;

-- A role that reads the marts, for `grants:` to name.
create role reader;

grant select on all tables in schema rs to public;

grant select on all tables in schema pg_catalog to public;

grant select on rs_views.late_binding to public;

grant usage on schema rs_views to public;
