{{ live_state(
    ref("int_tickit__listing_history"),
    ref("stg_tickit__listing"),
    stream="tickit.listing",
    key=["listing_id"],
) }}
