begin;

    lock state.touched_days;

    delete from state.touched_days;

    commit
