-- What Redshift's types do otherwise than PostgreSQL's. Each rule names its page in the
-- Amazon Redshift Database Developer Guide. Statements end at a semicolon and a blank line.

create schema rs;

create role millrace login password 'millrace';

alter database dev owner to millrace;

-- `rs` first: what it has goes before what PostgreSQL has.
alter database dev set search_path = rs, pg_catalog, public;

grant usage on schema rs to public;

-- SUPER (r_SUPER_type): lists, maps and structs of external tables.
create domain rs.super as jsonb;

-- Trailing blanks (r_Character_types, "Significance of trailing blanks"): a comparison of
-- two VARCHAR ignores them. PostgreSQL's own CHAR compares like that.
create function rs.varchar_eq(varchar, varchar) returns boolean
    language internal immutable strict parallel safe as 'bpchareq';

create function rs.varchar_ne(varchar, varchar) returns boolean
    language internal immutable strict parallel safe as 'bpcharne';

create function rs.varchar_lt(varchar, varchar) returns boolean
    language internal immutable strict parallel safe as 'bpcharlt';

create function rs.varchar_le(varchar, varchar) returns boolean
    language internal immutable strict parallel safe as 'bpcharle';

create function rs.varchar_gt(varchar, varchar) returns boolean
    language internal immutable strict parallel safe as 'bpchargt';

create function rs.varchar_ge(varchar, varchar) returns boolean
    language internal immutable strict parallel safe as 'bpcharge';

create function rs.varchar_cmp(varchar, varchar) returns integer
    language internal immutable strict parallel safe as 'bpcharcmp';

create function rs.varchar_hash(varchar) returns integer
    language internal immutable strict parallel safe as 'hashbpchar';

create operator rs.= (
    leftarg = varchar, rightarg = varchar, function = rs.varchar_eq,
    commutator = operator(rs.=), negator = operator(rs.<>),
    restrict = eqsel, join = eqjoinsel, hashes, merges
);

create operator rs.<> (
    leftarg = varchar, rightarg = varchar, function = rs.varchar_ne,
    commutator = operator(rs.<>), negator = operator(rs.=),
    restrict = neqsel, join = neqjoinsel
);

create operator rs.< (
    leftarg = varchar, rightarg = varchar, function = rs.varchar_lt,
    commutator = operator(rs.>), negator = operator(rs.>=),
    restrict = scalarltsel, join = scalarltjoinsel
);

create operator rs.<= (
    leftarg = varchar, rightarg = varchar, function = rs.varchar_le,
    commutator = operator(rs.>=), negator = operator(rs.>),
    restrict = scalarlesel, join = scalarlejoinsel
);

create operator rs.> (
    leftarg = varchar, rightarg = varchar, function = rs.varchar_gt,
    commutator = operator(rs.<), negator = operator(rs.<=),
    restrict = scalargtsel, join = scalargtjoinsel
);

create operator rs.>= (
    leftarg = varchar, rightarg = varchar, function = rs.varchar_ge,
    commutator = operator(rs.<=), negator = operator(rs.<),
    restrict = scalargesel, join = scalargejoinsel
);

-- The default of the type: joins, groups, `distinct` and `order by` go by it.
create operator class rs.varchar_order default for type varchar using btree as
    operator 1 rs.<, operator 2 rs.<=, operator 3 rs.=,
    operator 4 rs.>=, operator 5 rs.>,
    function 1 rs.varchar_cmp(varchar, varchar);

create operator class rs.varchar_groups default for type varchar using hash as
    operator 1 rs.=,
    function 1 rs.varchar_hash(varchar);

-- VARCHAR(n) (r_Character_types): n is in bytes. A cast cuts (r_CAST_function), between
-- characters; what is stored must fit, which `objects.sql` sees to.
create function rs.cut(value text, bytes integer) returns text
    language plpgsql immutable parallel safe as $$
declare
    cut text := left(value, bytes);
begin
    while octet_length(cut) > bytes loop
        cut := left(cut, -1);
    end loop;
    return cut;
end $$;
