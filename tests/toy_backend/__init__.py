"""A third backend, in a folder of its own, as one that is added to the product: it interprets programs."""
