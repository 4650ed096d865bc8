"""Agents for any text, without a grammar or a world: they use words, names, fields and pages."""
