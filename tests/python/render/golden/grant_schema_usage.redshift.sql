grant usage on schema dev_marts
        to reader, ROLE analysts;
