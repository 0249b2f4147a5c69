"""`lowerdeck report`: what a model consists of, what a run of it does, and the memory it needs."""
