"""A certificate that this machine's clients can be told to trust."""

import datetime
import ipaddress
from pathlib import Path

LIFETIME = datetime.timedelta(days=2)


def write(folder: Path, valid_for: datetime.timedelta = LIFETIME) -> tuple[str, str]:
    """Make a certificate for localhost that signs itself.

    Args:
        folder: folder for the files.
        valid_for: time until the certificate expires.

    Returns:
        The paths of the certificate and of its key, both PEM.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    certificate, private_key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(_signed(key, valid_for).public_bytes(pem))
    private_key.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())  # key of a test
    )
    return str(certificate), str(private_key)


def _signed(key, valid_for):  # type: ignore[no-untyped-def]  # cryptography is imported only where TLS is wanted
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - LIFETIME)
        .not_valid_after(now + valid_for)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
