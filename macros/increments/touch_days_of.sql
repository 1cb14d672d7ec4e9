{% macro touch_days_of(
    increment, relation, days_before=0, is_onwards=false, has_same_days=true
) -%}
    {%- if asks_the_lake() -%}
        {%- set name = relation.schema ~ "." ~ relation.identifier -%}
        {%- set after = read_to(increment, name) -%}
        {%- set to = increment_ids(increment, name).committed -%}
        {%- if to == 0 and not increment.is_everything and writes_rows() -%}
            {%- set node = node_of(relation) -%}
            {%- if node.config.incremental_strategy not in strategies_of_increments() -%}
                {%- do refuse_unfollowed(increment, [name]) -%}
            {%- endif -%}
            {{ stop(
                name ~ " has no read point in " ~ increment_tables().read_points,
                refresh_command(node.unique_id),
            ) }}
        {%- endif -%}
        {%- do increment.reads.update({name: {
            "after": after, "to": to, "table_uuid": none, "table_since": 0
        }}) -%}
        {%- if not increment.is_everything -%}
            {%- set theirs = {
                "is_everything": false, "has_timeless": false, "days": [],
                "onwards_from": none, "recorded": increment.recorded,
            } -%}
            {%- do touch_days(theirs, name, after) -%}
            {%- do increment.update({
                "is_everything": (
                    theirs.is_everything
                    or (after != to and not has_same_days)
                    or (theirs.has_timeless and (days_before > 0 or is_onwards))
                ),
                "has_timeless": increment.has_timeless or theirs.has_timeless,
            }) -%}
            {%- for day in theirs.days -%}
                {%- for step in range(days_before + 1) -%}
                    {%- do touch_day(
                        increment,
                        day - modules.datetime.timedelta(days=step),
                        is_onwards or day == theirs.onwards_from,
                    ) -%}
                {%- endfor -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
