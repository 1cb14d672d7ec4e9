delete from state.touched_days
