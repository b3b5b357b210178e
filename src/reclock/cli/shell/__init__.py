"""``reclock sql``: a shell for people, and for scripts."""
