create table artists (
    artist_id integer primary key,
    name varchar(200) not null
);
