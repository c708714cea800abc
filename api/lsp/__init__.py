"""Language server: what an editor asks of a model file (Language Server Protocol 3.17)."""
