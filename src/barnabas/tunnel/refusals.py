"""Why one end of the tunnel turned somebody away: the reasons, counted one by one, and the table from TLS's errors."""

import ssl
from enum import StrEnum

from barnabas.errors import Refused
from barnabas.tunnel.frames import BadFrame


class Reason(StrEnum):
    """A reason for refusing a connection, as metrics and logs name it."""

    NO_CERTIFICATE = "no_certificate"
    EXPIRED = "expired_certificate"
    CERTIFICATE = "wrong_certificate"
    TLS_VERSION = "tls_version"
    NOT_TLS = "not_tls"
    HANDSHAKE = "handshake_failed"
    HUNG_UP = "hung_up"
    SLOW = "too_slow"
    REQUEST = "bad_request"
    TARGET = "target_not_listed"
    UNREACHABLE = "target_unreachable"
    LIMIT = "too_many_connections"
    DISPLACED = "unfinished_handshake_displaced"
    LINK = "other_end_unavailable"


class TurnedAway(Refused):
    """One connection was refused; the service goes on."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


EXPIRED_CODES = (9, 10)  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED

TLS_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Reason.NO_CERTIFICATE,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": Reason.NO_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": Reason.CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": Reason.CERTIFICATE,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": Reason.CERTIFICATE,
    "TLSV1_ALERT_DECRYPT_ERROR": Reason.CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": Reason.EXPIRED,
    "UNSUPPORTED_PROTOCOL": Reason.TLS_VERSION,
    "TLSV1_ALERT_PROTOCOL_VERSION": Reason.TLS_VERSION,
    "WRONG_VERSION_NUMBER": Reason.NOT_TLS,
    "HTTP_REQUEST": Reason.NOT_TLS,
    "HTTPS_PROXY_REQUEST": Reason.NOT_TLS,
    "UNEXPECTED_MESSAGE": Reason.NOT_TLS,
    "RECORD_LAYER_FAILURE": Reason.NOT_TLS,
    "PACKET_LENGTH_TOO_LONG": Reason.NOT_TLS,
    "BAD_RECORD_TYPE": Reason.NOT_TLS,
    "LENGTH_MISMATCH": Reason.NOT_TLS,
}


def reason_of(error: Exception) -> Reason:
    """The reason behind what the handshake or the first message ended with."""
    if isinstance(error, TurnedAway):
        return error.reason
    if isinstance(error, BadFrame):
        return Reason.REQUEST
    if isinstance(error, ssl.SSLCertVerificationError):
        return Reason.EXPIRED if error.verify_code in EXPIRED_CODES else Reason.CERTIFICATE
    if isinstance(error, ssl.SSLError):
        return TLS_REASONS.get(error.reason or "", Reason.HANDSHAKE)
    # asyncio aborts a handshake that takes too long, and answers a peer that goes away with a reset.
    if isinstance(error, TimeoutError | ConnectionAbortedError):
        return Reason.SLOW
    return Reason.HUNG_UP
