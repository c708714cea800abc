"""Page that plays the examples in a browser: models, what is proved and chosen, learners in WebAssembly on rounds of data."""
