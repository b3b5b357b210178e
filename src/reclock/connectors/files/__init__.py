"""Files as sources: one file, or the files of a directory.

``listing`` says which files there are, ``content`` what is to be known of what is in them:
``text`` (lines; plain or ``gzip_members``) or ``parquet``; ``source`` watches them, and
``fingerprint`` tells whether they are still the same.
"""
