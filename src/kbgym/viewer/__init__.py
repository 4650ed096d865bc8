"""The viewer: runs, experiments and stores as a local page. It reads; no route of it changes a store or a run."""
