"""The documentation's site: pages made of the documents and of the tables of the code, their blocks executed, set by MkDocs."""
