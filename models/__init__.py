"""What others measure and test with: networks, forms of operators, corpora, exports."""
