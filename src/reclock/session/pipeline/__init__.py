"""Pipelines: files of statements that are compared with the database and applied."""
