"""TensorFlow 1 graphs: `.pb` and `.pbtxt` files with a frozen GraphDef."""
