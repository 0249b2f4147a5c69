"""Writers of model files, one framework to a package."""
