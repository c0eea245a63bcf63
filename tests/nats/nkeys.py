"""Keys and credentials of NATS, made with `openssl` alone: nkeys (an Ed25519 key, in base32 with a checksum) and JWTs that
are signed with them."""

import base64
import json
import os
import subprocess
import tempfile
import time

OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3  # first bytes, which base32 shows as O, A and U
SEED = 18 << 3
DER_OF_SEED = bytes.fromhex("302e020100300506032b657004220420")
ANY = -1


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def text_of(raw):
    return base64.b32encode(raw + crc16(raw).to_bytes(2, "little")).decode().rstrip("=")


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30).stdout


class Key:
    def __init__(self, kind):
        self.secret = os.urandom(32)
        with self.file() as name:
            public = openssl("pkey", "-inform", "DER", "-in", name, "-pubout", "-outform", "DER")[-32:]
        self.public = text_of(bytes([kind]) + public)
        self.seed = text_of(bytes([SEED | kind >> 5, (kind & 31) << 3]) + self.secret)

    def file(self):
        return Written(DER_OF_SEED + self.secret)

    def sign(self, data):
        with self.file() as key, Written(data) as text:
            return openssl("pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", key, "-in", text)

    def jwt(self, subject, what, expires_in_s=None):
        """What this key says of `subject`, another one's public key."""
        claims = {"jti": "made-by-a-test", "iat": int(time.time()) - 60, "iss": self.public, "sub": subject,
                  "name": what["type"], "nats": {**what, "version": 2}}
        if expires_in_s is not None:
            claims["exp"] = int(time.time()) + expires_in_s
        text = ".".join(base64url(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims))
        return f"{text}.{base64url(self.sign(text.encode()))}"


class Written:
    """A file that is there for a moment."""

    def __init__(self, data):
        self.data = data

    def __enter__(self):
        self.opened = tempfile.NamedTemporaryFile(prefix="vcpulse-nats-")
        self.opened.write(self.data)
        self.opened.flush()
        return self.opened.name

    def __exit__(self, *_):
        self.opened.close()


def account_of(operator, account, jetstream=True):
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), ANY)
    if jetstream:  # not for the servers' own account
        limits.update(dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), ANY))
    return operator.jwt(account.public, {"type": "account", "limits": {**limits, "wildcards": True}})


def user_of(account, user, publish=None, subscribe=None, expires_in_s=None):
    what = {"type": "user", "subs": ANY, "data": ANY, "payload": ANY,
            "pub": {"allow": publish} if publish else {}, "sub": {"allow": subscribe} if subscribe else {}}
    return account.jwt(user.public, what, expires_in_s)


def credentials(jwt, seed):
    """As `nsc generate creds` prints them."""
    return (f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            "************************* IMPORTANT *************************\n"
            "NKEY Seed printed below can be used to sign and prove identity.\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n")
