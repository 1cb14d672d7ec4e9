-- Functions that Redshift has and PostgreSQL lacks, or has with another result. The date
-- part comes as text: the server quotes it. Each names its page in the Amazon Redshift
-- Database Developer Guide.

-- DATEADD (r_DATEADD_function).
create function rs.dateadd(part text, amount bigint, moment timestamp) returns timestamp
    language sql immutable parallel safe as $$
    select moment + amount * ('1 ' || part)::interval
$$;

-- DATEDIFF (r_DATEDIFF_function): counts the boundaries between the two.
create function rs.datediff(part text, earlier timestamp, later timestamp) returns bigint
    language sql immutable parallel safe as $$
    select case rtrim(part, 's')
        when 'year' then extract(year from later) - extract(year from earlier)
        when 'quarter' then
            (extract(year from later) - extract(year from earlier)) * 4
            + extract(quarter from later) - extract(quarter from earlier)
        when 'month' then
            (extract(year from later) - extract(year from earlier)) * 12
            + extract(month from later) - extract(month from earlier)
        -- A week begins on Sunday here (r_DATE_TRUNC knows Monday).
        when 'week' then
            (
                date_trunc('week', later + interval '1 day')::date
                - date_trunc('week', earlier + interval '1 day')::date
            ) / 7
        else
            extract(epoch from date_trunc(rtrim(part, 's'), later) - date_trunc(rtrim(part, 's'), earlier))
            * case rtrim(part, 's')
                when 'microsecond' then 1000000
                when 'millisecond' then 1000
                when 'second' then 1
                when 'minute' then 1 / 60.0
                when 'hour' then 1 / 3600.0
                when 'day' then 1 / 86400.0
            end
    end::bigint
$$;

-- DATE_TRUNC (r_DATE_TRUNC): a TIMESTAMP, of a DATE too.
create function rs.date_trunc(part text, day date) returns timestamp
    language sql immutable parallel safe as $$
    select pg_catalog.date_trunc(part, day::timestamp)
$$;

-- GETDATE (r_GETDATE): the start of the statement, in the time zone of the session.
create function rs.getdate() returns timestamp
    language sql stable parallel safe as $$
    select date_trunc('second', statement_timestamp() at time zone 'UTC')
$$;

-- AVG (r_AVG): of whole numbers a BIGINT, of decimals the scale of the argument.
create function rs.add_whole(state numeric[], value bigint) returns numeric[]
    language sql immutable parallel safe as $$
    select case when value is null then state else array[state[1] + value, state[2] + 1] end
$$;

create function rs.average_whole(state numeric[]) returns bigint
    language sql immutable parallel safe as $$
    select trunc(state[1] / nullif(state[2], 0))::bigint
$$;

create aggregate rs.avg(bigint) (
    sfunc = rs.add_whole, stype = numeric[], finalfunc = rs.average_whole, initcond = '{0,0}'
);

create function rs.add_whole(state numeric[], value integer) returns numeric[]
    language sql immutable parallel safe as $$ select rs.add_whole(state, value::bigint) $$;

create aggregate rs.avg(integer) (
    sfunc = rs.add_whole, stype = numeric[], finalfunc = rs.average_whole, initcond = '{0,0}'
);

create function rs.add_decimal(state numeric[], value numeric) returns numeric[]
    language sql immutable parallel safe as $$
    select case when value is null then state else array[state[1] + value, state[2] + 1] end
$$;

create function rs.average_decimal(state numeric[]) returns numeric
    language sql immutable parallel safe as $$
    select trunc(state[1] / nullif(state[2], 0), scale(state[1]))
$$;

create aggregate rs.avg(numeric) (
    sfunc = rs.add_decimal, stype = numeric[], finalfunc = rs.average_decimal, initcond = '{0,0}'
);

-- CONCAT (r_CONCAT): of two texts, nothing when one is missing.
create function rs.concat(first text, second text) returns text
    language sql immutable parallel safe as $$ select first || second $$;

-- SHA2 (SHA2): hexadecimal digits; none where there is no hash of so many bits.
create function rs.sha2(value text, bits integer) returns text
    language sql immutable parallel safe strict as $$
    select case bits
        when 0 then encode(sha256(convert_to(value, 'UTF8')), 'hex')
        when 224 then encode(sha224(convert_to(value, 'UTF8')), 'hex')
        when 256 then encode(sha256(convert_to(value, 'UTF8')), 'hex')
        when 384 then encode(sha384(convert_to(value, 'UTF8')), 'hex')
        when 512 then encode(sha512(convert_to(value, 'UTF8')), 'hex')
        else ''
    end
$$;

-- JSON_PARSE (JSON_PARSE).
create function rs.json_parse(value text) returns rs.super
    language sql immutable parallel safe as $$ select value::jsonb $$;
