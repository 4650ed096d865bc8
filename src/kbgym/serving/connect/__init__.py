"""Connecting agents to a store: their own configuration files, changed in one place and otherwise left as they are."""
