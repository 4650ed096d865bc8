"""Agents for any text: a reader and a curator that know no grammar and no world, only words, names, fields and pages."""
