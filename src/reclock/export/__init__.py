"""Sinks in the running system: what they are made of, how they are written, how they do."""
