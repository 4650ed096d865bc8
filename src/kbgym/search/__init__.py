"""Finding texts: embedders, the vector cache, indexes, and the engine that keeps them in step."""
