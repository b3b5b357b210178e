"""Sinks in the running system: their definition, their threads, their status."""
