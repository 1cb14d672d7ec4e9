delete from intermediate.artists_versioned
    where
        version_key in (select version_key from artists_versioned__tmp)
        or cast(artist_id as varchar(128)) in ('7');

    insert into intermediate.artists_versioned (version_key, artist_id)
    select version_key, artist_id
    from artists_versioned__tmp
