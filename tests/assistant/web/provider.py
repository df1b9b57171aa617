"""A small OpenID Connect provider as its own process: signs in whoever the query names, checks what it is told."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "kinfolk", "shared secret"
KEY, OTHER = (RSAKey.generate_key(2048, {"kid": kid}) for kid in ("k1", "k1"))
codes: dict[str, dict[str, Any]] = {}


class Provider(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/.well-known/openid-configuration":
            paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            self.answer({"issuer": issuer, **{name: f"{issuer}/{path}" for name, path in paths.items()}})
        elif url.path == "/keys":
            self.answer({"keys": [KEY.as_dict(private=False)]})
        elif url.path == "/authorize":
            assert asked["client_id"] == CLIENT
            assert asked["code_challenge_method"] == "S256"
            code = token_urlsafe(8)
            codes[code] = asked
            self.send_response(302)
            back = urlencode({"code": code, "state": asked["state"]})
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        told = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        name, _, secret = base64.b64decode(self.headers["Authorization"].partition(" ")[2]).decode().partition(":")
        asked = codes.pop(told["code"][0], None)
        digest = hashlib.sha256(told["code_verifier"][0].encode()).digest()
        proves = asked and asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (name, secret.replace("+", " ").replace("%20", " ")) != (CLIENT, SECRET) or not asked or not proves:
            self.answer({"error": "invalid_grant"}, 400)
            return
        how = asked.get("how", "")
        claims = {
            "iss": "https://evil.example" if how == "issuer" else issuer,
            "aud": "another" if how == "audience" else CLIENT,
            "exp": int(time.time()) + (-3600 if how == "expired" else 300),
            "nonce": "another" if how == "nonce" else asked["nonce"],
            "email": asked["who"],
            "email_verified": how != "unverified",
        }
        token = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, OTHER if how == "key" else KEY)
        self.answer({"access_token": "x", "token_type": "Bearer", "id_token": token})

    def answer(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Provider)
    print(server.server_address[1], flush=True)
    server.serve_forever()
    sys.exit()
