"""CDCv2 statements of a source: their updates and counts, and the times that they close."""
