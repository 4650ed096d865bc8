"""PhantomWiki, a wiki of fictional people by an external generator, as a world with complete pools and supports."""

from __future__ import annotations

from kbgym.worlds.phantomwiki.build import RESERVED, Leakage, Shipped, build, leakage, pool, wiki_of
from kbgym.worlds.phantomwiki.wiki import TEMPLATES, Instance, Wiki

__all__ = ["RESERVED", "TEMPLATES", "Instance", "Leakage", "Shipped", "Wiki", "build", "leakage", "pool", "wiki_of"]
