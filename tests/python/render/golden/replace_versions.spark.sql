merge into intermediate.artists_history as versions
    using artists_history__tmp as fresh
    on
        versions.version_key = fresh.version_key
    when matched then update set
        version_key = fresh.version_key,
        artist_id = fresh.artist_id
    when not matched then insert (version_key, artist_id)
    values (fresh.version_key, fresh.artist_id)
    when not matched by source and cast(artist_id as varchar(128)) in ('7') then delete
