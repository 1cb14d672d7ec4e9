create table listing (
    listing_id integer primary key,
    quantity integer not null
);
