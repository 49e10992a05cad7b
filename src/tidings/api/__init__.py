"""The HTTP API: thin. A request is parsed, an action of a role is called as that role, its result is shown."""
