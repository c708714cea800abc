"""Facts: what the theorems need to know of a model, each with its proof. `check(model)` gives the ledger."""
