"""Pictures of modules: `lowerdeck view`."""
