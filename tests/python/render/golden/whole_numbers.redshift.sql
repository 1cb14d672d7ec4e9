select bit_0.digit * 1 + bit_1.digit * 2 + bit_2.digit * 4 as whole_number
    from
        (select 0 as digit union all select 1 as digit) as bit_0
        cross join (select 0 as digit union all select 1 as digit) as bit_1
        cross join (select 0 as digit union all select 1 as digit) as bit_2
        where bit_0.digit * 1 + bit_1.digit * 2 + bit_2.digit * 4 < 5
