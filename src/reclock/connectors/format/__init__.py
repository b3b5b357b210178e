"""From payloads to typed columns: JSON, Avro, CSV, TEXT and BYTES.

``decoder`` is the contract, ``choose`` makes the decoder that a statement asks for. Each
text format is defined by an ``…_exact`` module, record by record, and made fast by a
``…_batch`` one, which ``batch`` puts together. No Spark.
"""

from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Decoded, Decoder, Field

__all__ = ["Decoded", "Decoder", "Field", "decoder_of"]
