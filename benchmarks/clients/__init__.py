"""Clients of benchmarks, in processes of their own."""
