merge into intermediate.artists_history as versions
    using artists_history__tmp as updates
    on
        versions.version_key = updates.version_key
    when matched then update set
        version_key = updates.version_key,
        artist_id = updates.artist_id
    when not matched then insert (version_key, artist_id)
    values (updates.version_key, updates.artist_id)
    when not matched by source and cast(artist_id as varchar(128)) in ('7') then delete
