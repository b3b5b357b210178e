"""Every function, operator and cast, compared with a real PostgreSQL over edge values."""
