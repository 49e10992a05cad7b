"""A certificate of one's own for receivers on this machine, and the authority that vouches for it."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """Files: whom senders must trust, and what the receivers show (certificate and key in one)."""

    authority: Path
    receiver: Path


def make_certificates(directory: Path, address: str) -> Certificates:
    """For one IP address, valid for a day."""
    authority_key, receiver_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name, receiver_name = _name("Tidings demo authority"), _name("Tidings demo receiver")
    authority = (
        _begun(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_may_sign_certificates(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    receiver = (
        _begun(receiver_name, authority_name, receiver_key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    made = Certificates(directory / "authority.pem", directory / "receiver.pem")
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    made.receiver.write_bytes(receiver.public_bytes(serialization.Encoding.PEM) + _key_text(receiver_key))
    return made


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
    )


def _may_sign_certificates() -> x509.KeyUsage:
    """Python 3.13 trusts no authority that does not say so."""
    others = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    never = dict.fromkeys((*others, "crl_sign", "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(key_cert_sign=True, **never)


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
