delete from intermediate.artists_history
    where
        version_key in (select version_key from artists_history__tmp)
        or cast(artist_id as varchar(128)) in ('7');

    insert into intermediate.artists_history (version_key, artist_id)
    select version_key, artist_id
    from artists_history__tmp
