{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__user"),
    stream="tickit.user",
    key=["user_id"],
    attributes=[
        "username",
        "first_name",
        "last_name",
        "city",
        "state",
        "email",
        "phone",
        "is_fan_of_sports",
        "is_fan_of_theatre",
        "is_fan_of_concerts",
        "is_fan_of_jazz",
        "is_fan_of_classical",
        "is_fan_of_opera",
        "is_fan_of_rock",
        "is_fan_of_vegas",
        "is_fan_of_broadway",
        "is_fan_of_musicals",
    ],
) }}
