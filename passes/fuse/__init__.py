"""Passes that find whole formulas: activations, norms, softmax, attention, quantized products."""
