"""Test inputs as data, one module per operator: read by tests/backends, tests/rules and by benchmarks."""
