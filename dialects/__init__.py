"""Operations, types and attributes, one dialect to a package."""
