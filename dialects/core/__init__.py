"""The core dialect: value semantics, explicit windows, structured control flow."""
