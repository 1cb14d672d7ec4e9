create table film (
    film_id integer primary key,
    title varchar(255) not null
);
