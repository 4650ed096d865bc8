"""External agents: each pass runs as a command that plays over MCP with the tools of its role."""
