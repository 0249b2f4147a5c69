"""The frontend of MXNet: symbols as JSON, with their weights in NDArray files."""
