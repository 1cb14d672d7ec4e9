{#- Fixes unit tests on Spark, where dbt creates, describes and drops a view of each model to get
    its column types: Spark can describe a query. The rest is dbt's code. -#}
{% materialization unit, adapter="spark" %}
    {%- set types = {} -%}
    {%- set quoted = {} -%}
    {%- for column in run_query("describe query " ~ sql) -%}
        {%- do types.update({column["col_name"] | lower: column["data_type"]}) -%}
        {%- do quoted.update({column["col_name"] | lower: adapter.quote(column["col_name"])}) -%}
    {%- endfor -%}
    {%- set rows = config.get("expected_rows") -%}
    {%- set tested = [] -%}
    {%- for name in (rows[0] if rows else types) -%}
        {%- do tested.append(quoted[name | lower]) -%}
    {%- endfor -%}
    {%- set expected = config.get("expected_sql") or get_expected_sql(rows, types, quoted) -%}
    {%- call statement("main", fetch_result=True) -%}
        {{ get_unit_test_sql(sql, expected, tested) }}
    {%- endcall -%}
    {{ return({"relations": []}) }}
{% endmaterialization %}
