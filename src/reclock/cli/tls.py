"""TLS for the servers of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidValue

if TYPE_CHECKING:
    import ssl
    from pathlib import Path


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return how to speak TLS with a certificate; None without one."""
    import ssl  # noqa: PLC0415

    if certificate is None:
        if key is not None:
            message = "--tls-key is of no use without --tls-cert"
            raise InvalidValue(message, hint="give both, or none")
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as cause:
        message = f"cannot read the certificate {certificate}"
        hint = "give a PEM file with --tls-cert, and its private key with --tls-key"
        raise InvalidValue(message, detail=str(cause), hint=hint) from cause
    return made
