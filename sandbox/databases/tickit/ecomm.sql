-- TICKIT's days, listings and sales, in MariaDB.
--
-- No foreign keys: users and events are in other databases.

create table `date` (
    dateid int not null primary key,
    caldate date not null,
    day char(3) not null,
    week smallint not null,
    month char(5) not null,
    qtr char(5) not null,
    year smallint not null,
    holiday boolean not null default false
) character set utf8mb4;

create table listing (
    listid int not null primary key,
    sellerid int not null,
    eventid int not null,
    dateid int not null,
    numtickets smallint not null,
    priceperticket decimal(8, 2) not null,
    totalprice decimal(8, 2) not null,
    listtime datetime not null
) character set utf8mb4;

create table sale (
    saleid int not null primary key,
    listid int not null,
    sellerid int not null,
    buyerid int not null,
    eventid int not null,
    dateid int not null,
    qtysold smallint not null,
    pricepaid decimal(8, 2) not null,
    commission decimal(8, 2) not null,
    saletime datetime(6) not null
) character set utf8mb4;
