"""Agents for any text: they know no grammar and no world, only words, names, fields and pages."""
