"""What sending a webhook costs, beside aiohttp."""
