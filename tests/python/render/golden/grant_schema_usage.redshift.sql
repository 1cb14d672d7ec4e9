grant usage on schema dev_intermediate
        to reader, ROLE analysts;
        grant usage on schema dev_marts
        to reader, ROLE analysts;
