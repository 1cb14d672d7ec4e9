{{ live_state(
    ref("int_moma__artists_history"),
    ref("stg_moma__artists"),
    stream="moma.artists",
    key=["artist_id"],
) }}
