"""Files as sources: one file, or the files of a directory.

``listing`` finds the files. ``content`` is the protocol of what they contain: ``text`` (lines;
plain or ``gzip_members``) or ``parquet``. ``source`` watches them, and ``fingerprint`` tells
whether they are still the same.
"""
