-- Tables and views as Redshift makes them. The server turns the statement that makes one
-- into a call of these, which run with the rights of whoever calls.

create table rs.table_attributes (table_oid oid primary key, diststyle text, sort_keys text[]);

create function rs.note_table(made regclass, diststyle text, sort_keys text[]) returns void
    language sql security definer set search_path = pg_catalog as $$
    insert into rs.table_attributes values (made, diststyle, sort_keys)
    on conflict (table_oid) do update set diststyle = excluded.diststyle, sort_keys = excluded.sort_keys
$$;

-- DISTKEY and SORTKEY (r_CREATE_TABLE_NEW) name columns of the table. A value longer than
-- its VARCHAR in bytes is an error when it is stored (r_Character_types).
create function rs.create_table(
    statement text, table_name text, dist_style text, dist_key text, sort_keys text[]
) returns void language plpgsql as $$
declare
    made regclass;
    named text;
    found record;
begin
    execute statement;
    made := table_name::regclass;
    foreach named in array sort_keys || dist_key loop
        if named is not null and not exists (
            select from pg_attribute where attrelid = made and attname = named and attnum > 0
        ) then
            raise exception 'column "%" named in distkey or sortkey is not in %', named, made;
        end if;
    end loop;
    perform rs.note_table(
        made, coalesce('KEY(' || dist_key || ')', upper(dist_style), 'AUTO'), sort_keys
    );
    for found in
        select attname, atttypmod - 4 as bytes from pg_attribute
        where attrelid = made and atttypid = 'varchar'::regtype and atttypmod > 4
            and not exists (
                select from pg_constraint
                where conrelid = made and conname = 'value too long for ' || attname
            )
    loop
        execute format(
            'alter table %s add constraint %I check (octet_length(%I) <= %s)',
            made, 'value too long for ' || found.attname, found.attname, found.bytes
        );
    end loop;
end $$;

-- A view over an external table must be late-binding (r_CREATE_VIEW).
create function rs.create_view(statement text, view_name text) returns void
    language plpgsql as $$
begin
    execute statement;
    if exists (
        select from pg_rewrite
        join pg_depend on pg_depend.objid = pg_rewrite.oid
        join pg_class on pg_class.oid = pg_depend.refobjid and relkind = 'f'
        where ev_class = view_name::regclass
    ) then
        raise exception 'External tables are not supported in views: '
            'create % WITH NO SCHEMA BINDING', view_name;
    end if;
end $$;

-- A late-binding view knows its tables by name alone: they may go and come back. Here it
-- reads a function, whose text PostgreSQL does not look into.
create schema rs_views authorization millrace;

create table rs_views.late_binding (view_oid oid primary key, function_name text);

create sequence rs_views.numbers;

grant all on all tables in schema rs_views to millrace;

grant all on all sequences in schema rs_views to millrace;

create function rs.create_late_binding_view(view_name text, body text) returns void
    language plpgsql as $$
declare
    function_name text := 'rs_views.v' || nextval('rs_views.numbers');
    returned text;
    selected text;
begin
    execute 'create temporary view rs_columns as ' || body;
    select
        string_agg(format('%I %s', attname, format_type(atttypid, null)), ', ' order by attnum),
        string_agg(
            format('%1$I::%2$s as %1$I', attname, format_type(atttypid, atttypmod)),
            ', ' order by attnum
        )
    into returned, selected
    from pg_catalog.pg_attribute where attrelid = 'rs_columns'::regclass and attnum > 0;
    drop view rs_columns;
    execute format(
        'create function %s() returns table (%s) language sql stable as %L',
        function_name, returned, body
    );
    execute format('create view %s as select %s from %s()', view_name, selected, function_name);
    insert into rs_views.late_binding values (view_name::regclass, function_name);
end $$;

create function rs.forget_late_binding() returns event_trigger
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    forgotten text;
begin
    for forgotten in
        delete from rs_views.late_binding
        where view_oid in (select objid from pg_event_trigger_dropped_objects())
        returning function_name
    loop
        execute format('drop function if exists %s()', forgotten);
    end loop;
end $$;

create event trigger forget_late_binding on sql_drop
    when tag in ('DROP VIEW', 'DROP SCHEMA', 'DROP TABLE')
    execute function rs.forget_late_binding();

-- PG_GET_LATE_BINDING_VIEW_COLS (PG_GET_LATE_BINDING_VIEW_COLS).
create function rs.pg_get_late_binding_view_cols() returns setof record
    language sql stable as $$
    select
        nspname, relname, attname,
        format_type(atttypid, atttypmod)::varchar, attnum::integer
    from rs_views.late_binding
    join pg_class on pg_class.oid = view_oid
    join pg_namespace on pg_namespace.oid = relnamespace
    join pg_catalog.pg_attribute on attrelid = view_oid and attnum > 0
$$;
