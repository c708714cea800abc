"""Rules that a practitioner would write for a model, played over the same rounds as a learner.

Each decides from the past alone and is built from the problem alone. `base.py` has the interface, `rules.py` the list of rules.
"""
