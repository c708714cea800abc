"""Evidence against what a model states of its data, gathered while the rounds come."""
