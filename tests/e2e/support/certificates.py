"""Certificates made by openssl for as long as the tests run."""

import pathlib
import subprocess
from typing import NamedTuple


class Pair(NamedTuple):
    cert: pathlib.Path
    key: pathlib.Path


def make_certificate(folder, name, signed_by=None):
    """For 127.0.0.1; signed by itself if by nobody else."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}-key.pem")
    signer = ["-CA", signed_by.cert, "-CAkey", signed_by.key] if signed_by else []
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", pair.cert, "-keyout", pair.key),
            *signer,
        ],
        check=True,
        capture_output=True,
    )
    return pair
