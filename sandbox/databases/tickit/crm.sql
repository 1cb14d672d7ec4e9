-- TICKIT's users, who sell and buy, in PostgreSQL.

create table "user" (
    userid integer primary key,
    username char(8) not null unique,
    firstname varchar(30) not null,
    lastname varchar(30) not null,
    city varchar(30),
    state char(2),
    email varchar(100),
    phone char(14),
    likesports boolean,
    liketheatre boolean,
    likeconcerts boolean,
    likejazz boolean,
    likeclassical boolean,
    likeopera boolean,
    likerock boolean,
    likevegas boolean,
    likebroadway boolean,
    likemusicals boolean
);
