"""CDCv2 statements of a source: what they say of which times, and which of these they close."""
