"""What passes are made of: driver, options, contracts, provenance, queries of values and types."""
