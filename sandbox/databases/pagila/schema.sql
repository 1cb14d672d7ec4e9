-- Pagila's films, who plays in them, and addresses, in PostgreSQL.
--
-- No foreign keys: random changes delete rows, give them other keys and empty whole tables in
-- any order. A key that others refer to would refuse that or change them too.

create type mpaa_rating as enum ('G', 'PG', 'PG-13', 'R', 'NC-17');

create domain year as integer check (value >= 1901 and value <= 2155);

create table film (
    film_id integer primary key,
    title varchar(255) not null,
    description text,
    release_year year,
    language_id integer not null,
    original_language_id integer,
    rental_duration smallint not null default 3,
    rental_rate numeric(4, 2) not null default 4.99,
    length smallint,
    replacement_cost numeric(5, 2) not null default 19.99,
    rating mpaa_rating default 'G',
    last_update timestamptz not null default now(),
    special_features text [],
    fulltext tsvector not null
);

-- Stored as it is and, from 2 kB on, outside of the row: an update that leaves a long
-- description alone has none in the log.
alter table film alter column description set storage external;

create table actor (
    actor_id integer primary key,
    first_name varchar(45) not null,
    last_name varchar(45) not null,
    last_update timestamptz not null default now()
);

create table category (
    category_id integer primary key,
    name varchar(25) not null,
    last_update timestamptz not null default now()
);

create table language (
    language_id integer primary key,
    name char(20) not null,
    last_update timestamptz not null default now()
);

create table film_actor (
    actor_id integer not null,
    film_id integer not null,
    last_update timestamptz not null default now(),
    primary key (actor_id, film_id)
);

create table film_category (
    film_id integer not null,
    category_id integer not null,
    last_update timestamptz not null default now(),
    primary key (film_id, category_id)
);

create table address (
    address_id integer primary key,
    address varchar(50) not null,
    address2 varchar(50),
    district varchar(20) not null,
    city_id integer not null,
    postal_code varchar(10),
    phone varchar(20) not null,
    last_update timestamptz not null default now()
);

create function last_updated() returns trigger language plpgsql as $$
begin
    new.last_update = current_timestamp;
    return new;
end
$$;

create trigger last_updated before update on film
for each row execute function last_updated();
create trigger last_updated before update on actor
for each row execute function last_updated();
create trigger last_updated before update on category
for each row execute function last_updated();
create trigger last_updated before update on language
for each row execute function last_updated();
create trigger last_updated before update on film_actor
for each row execute function last_updated();
create trigger last_updated before update on film_category
for each row execute function last_updated();
create trigger last_updated before update on address
for each row execute function last_updated();

create trigger film_fulltext before insert or update on film
for each row execute function
tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title', 'description');
