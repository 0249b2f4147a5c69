"""What the ops of a program of TorchScript give, which states no types."""
