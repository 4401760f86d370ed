"""The clauses of the backend contract, a module for each group of them; `BackendSuite` is all of them together."""
