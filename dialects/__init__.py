"""Operations, types and attributes, one dialect to a package."""

from lowerdeck.dialects.lazy_methods import install

install()  # before a class of xDSL is made
