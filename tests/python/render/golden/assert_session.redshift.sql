-- asks the engine:
show timezone
