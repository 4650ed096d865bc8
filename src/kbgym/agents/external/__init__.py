"""Whole agents as players: for every pass a command is started, which plays it over MCP with the tools of its role."""
