-- External schemas over a data catalog (r_CREATE_EXTERNAL_SCHEMA): here the catalogue is
-- that of the sandbox's lake. What it lists comes from the server, as
-- [{"database", "table", "columns": [[name, type], ...]}, ...], at each new connection.

create extension file_fdw schema rs;

create server lake foreign data wrapper file_fdw;

create table rs.external_schemas (schema_name text primary key, database_name text);

create table rs.external_tables (schema_name text, table_name text, columns text);

create function rs.sync_external(listing json) returns void
    language plpgsql security definer set search_path = pg_catalog as $$
declare
    found record;
begin
    perform pg_advisory_xact_lock(7);
    delete from rs.external_schemas where to_regnamespace(quote_ident(schema_name)) is null;
    delete from rs.external_tables
    where to_regclass(format('%I.%I', schema_name, table_name)) is null;
    for found in
        with listed as (
            select
                schemas.schema_name,
                entry ->> 'table' as table_name,
                (
                    select string_agg(format('%I %s', c ->> 0, c ->> 1), ', ' order by place)
                    from json_array_elements(entry -> 'columns') with ordinality as cs (c, place)
                ) as columns,
                (
                    select string_agg(c ->> 0, ' ' order by place)
                    from json_array_elements(entry -> 'columns') with ordinality as cs (c, place)
                ) as names,
                database_name
            from json_array_elements(listing) as entries (entry)
            join rs.external_schemas as schemas on database_name = entry ->> 'database'
        )
        select
            coalesce(listed.schema_name, known.schema_name) as schema_name,
            coalesce(listed.table_name, known.table_name) as table_name,
            known.columns is not null as is_known,
            listed.columns, listed.names, listed.database_name
        from listed
        full join rs.external_tables as known
            on known.schema_name = listed.schema_name and known.table_name = listed.table_name
        where known.columns is distinct from listed.columns
    loop
        if found.is_known then
            execute format('drop foreign table %I.%I', found.schema_name, found.table_name);
            delete from rs.external_tables
            where schema_name = found.schema_name and table_name = found.table_name;
        end if;
        if found.columns is not null then
            if concat(found.database_name, found.table_name, found.names) !~ '^[A-Za-z0-9_ ]+$' then
                raise exception 'a name of % is not plain', found.table_name;
            end if;
            execute format(
                'create foreign table %I.%I (%s) server lake options (format ''csv'', program %L)',
                found.schema_name, found.table_name, found.columns,
                concat_ws(
                    ' ', '{{ scan }}', found.database_name || '.' || found.table_name, found.names
                )
            );
            execute format(
                'grant select on %I.%I to public', found.schema_name, found.table_name
            );
            insert into rs.external_tables
            values (found.schema_name, found.table_name, found.columns);
        end if;
    end loop;
end $$;

create function rs.create_external_schema(
    named text, of_database text, if_not_exists boolean, listing json
) returns void language plpgsql security definer set search_path = pg_catalog as $$
begin
    if to_regnamespace(quote_ident(named)) is not null then
        if if_not_exists then
            return;
        end if;
        raise exception 'schema "%" already exists', named;
    end if;
    execute format('create schema %I authorization millrace', named);
    execute format('grant usage on schema %I to public', named);
    insert into rs.external_schemas values (named, of_database);
    perform rs.sync_external(listing);
end $$;
