"""The tests, importable by each other: `tests.cases` holds the inputs that every test reads."""
