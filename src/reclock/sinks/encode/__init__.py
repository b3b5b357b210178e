"""From the changes of whole timestamps to messages: envelopes over formats.

``encoder`` is the contract, ``choose`` makes the encoder that a statement asks for. An envelope
(``upsert``, ``debezium``, ``cdcv2``) decides which messages there are, by positions alone; a
format (``json_format``, over ``json_text``) writes their bytes, column by column.
"""
