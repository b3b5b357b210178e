"""A file of statements that says what there shall be: compared with what there is, and applied."""
