create table if not exists state.touched_days (
        model_name varchar(256),
        touched_date date
    )
