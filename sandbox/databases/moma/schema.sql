-- A museum's artists and works, in PostgreSQL.
--
-- No foreign keys: random changes delete artists and give them other keys, and a museum's own
-- data has works of artists that nobody entered.

create table artists (
    artist_id integer primary key,
    name varchar(256) not null,
    nationality varchar(64),
    gender varchar(32),
    birth_year smallint,
    death_year smallint
);

create table artworks (
    artwork_id integer primary key,
    title text,
    artist_id integer,
    date_text varchar(128),
    medium text,
    dimensions text,
    acquisition_date date,
    credit text,
    is_catalogued boolean,
    department varchar(128),
    classification varchar(64),
    object_number varchar(64),
    diameter_cm numeric(18, 10),
    circumference_cm numeric(18, 10),
    height_cm numeric(18, 10),
    length_cm numeric(18, 10),
    width_cm numeric(18, 10),
    depth_cm numeric(18, 10),
    weight_kg numeric(18, 10),
    duration_seconds numeric(12, 2),
    updated_at timestamptz default now()
);

create function note_update() returns trigger language plpgsql as $$
begin
    new.updated_at = now();
    return new;
end
$$;

create trigger note_update before update on artworks
for each row execute function note_update();
