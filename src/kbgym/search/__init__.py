"""Text search: embedders, the vector cache, indexes, and the engine that keeps the indexes in sync."""
