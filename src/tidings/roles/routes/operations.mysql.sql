-- last_event_number: the highest id that was ever drawn for an event
CALL last_event_number();
