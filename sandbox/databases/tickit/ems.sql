-- TICKIT's categories, venues and events, in PostgreSQL.
--
-- No foreign keys, as in the shop's other databases; random changes keep the venue and category
-- of each event.

create table category (
    catid integer primary key,
    catgroup varchar(20) not null,
    catname varchar(20) not null,
    catdesc varchar(50)
);

create table venue (
    venueid integer primary key,
    venuename varchar(100) not null,
    venuecity varchar(30) not null,
    venuestate char(2) not null,
    venueseats integer
);

create table event (
    eventid integer primary key,
    venueid integer not null,
    catid integer not null,
    dateid integer not null,
    eventname varchar(200) not null,
    starttime timestamp not null
);
