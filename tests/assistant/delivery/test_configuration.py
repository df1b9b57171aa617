"""The settings file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.configuration import SHADOW_DAYS, Configuration, read_configuration
from kinfolk_assistant.delivery.smtp import MailServer
from kinfolk_assistant.reading.trust import Trust

_USER = """
[[users]]
address = "Ann@Example.org"
[users.caldav]
url = "https://dav.example.org/"
user = "ann"
"""


def read(folder: Path, text: str) -> Configuration:
    path = folder / "assistant.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return read_configuration(path)


def test_everything_that_is_set_is_read(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    found = read(
        tmp_path,
        """
        ledger = "postgresql://kinfolk@db/kinfolk"
        [smtp]
        host = "mail.example.org"
        port = 2525
        security = "tls"
        user = "post"
        password = "s3cret"
        certificate = "ca.pem"
        timeout = 5
        [files]
        folder = "answers"
        """
        + _USER
        + 'password = "ann\'s"\ntimeout = 7\n[[users]]\naddress = "bob@example.org"\n',
    )
    assert found.ledger == "postgresql://kinfolk@db/kinfolk"
    certificate = str(tmp_path / "ca.pem")
    assert found.smtp == MailServer("mail.example.org", 2525, "tls", "post", "s3cret", certificate, 5)
    assert found.folder == tmp_path / "answers"
    [(address, account)] = found.accounts.items()
    assert (address, account.url, account.username, account.password, account.timeout) == (
        "ann@example.org",
        "https://dav.example.org/",
        "ann",
        "ann's",
        7,
    )
    assert found.warnings == ()


def test_little_need_be_set(tmp_path: Path) -> None:
    expected = Configuration(str(tmp_path / "a.db"), trust=Trust(shadow_days=SHADOW_DAYS), key_file=tmp_path / "a.key")
    assert read(tmp_path, 'ledger = "a.db"') == expected


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_the_port_is_that_of_the_security_where_none_is_named(tmp_path: Path, security: str, port: int) -> None:
    found = read(tmp_path, f'ledger = "a.db"\n[smtp]\nhost = "m"\nsecurity = "{security}"')
    assert found.smtp is not None
    assert found.smtp.port == port


def test_a_secret_comes_from_a_file_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from the file\n")
    (tmp_path / "password").chmod(0o600)
    found = read(tmp_path, 'ledger = "a.db"' + _USER + 'password_file = "password"')
    assert found.accounts["ann@example.org"].password == "from the file"
    assert found.warnings == ()


def test_a_secret_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_URL", "postgresql://u:p@db/x")
    monkeypatch.setenv("ANN", "from outside")
    found = read(tmp_path, 'ledger_env = "LEDGER_URL"' + _USER + 'password_env = "ANN"')
    assert found.ledger == "postgresql://u:p@db/x"
    assert found.accounts["ann@example.org"].password == "from outside"


def test_secrets_do_not_show_when_settings_are_printed(tmp_path: Path) -> None:
    text = 'ledger = "postgresql://u:hunter1@db/x"\n[smtp]\nhost="m"\nuser="u"\npassword="hunter2"' + _USER
    assert "hunter" not in repr(read(tmp_path, text + 'password = "hunter3"'))


@pytest.mark.skipif(os.name != "posix", reason="file modes are of POSIX systems")
def test_a_secret_that_everyone_can_read_gives_a_warning(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("x")
    secret.chmod(0o644)
    [warning] = read(tmp_path, 'ledger = "a.db"' + _USER + 'password_file = "password"').warnings
    assert "users[1].caldav.password_file" in warning
    assert warning.endswith(f"which everyone on this machine can read; say chmod 600 {secret}.")
    path = tmp_path / "assistant.toml"
    path.write_text('ledger = "a.db"' + _USER + 'password = "x"')
    path.chmod(0o644)
    [warning] = read_configuration(path).warnings
    assert f"chmod 600 {path}" in warning


def test_passwords_in_the_clear_give_a_warning(tmp_path: Path) -> None:
    text = 'ledger = "a.db"\n[smtp]\nhost="mail.example.org"\nsecurity="none"\nuser="u"\npassword="p"' + _USER
    warnings = read(tmp_path, text.replace("https:", "http:") + 'password = "x"').warnings
    assert len(warnings) == 2
    assert all("can be read on its way" in warning for warning in warnings)
    near = text.replace("https://dav.example.org", "http://127.0.0.1:8000").replace("mail.example.org", "localhost")
    assert read(tmp_path, near + 'password = "x"').warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ledger = ", "is not TOML"),
        ("", "ledger is missing"),
        ("ledger = 3", "ledger is 3, but must be a text"),
        ('ledger = ""', "ledger is '', but must be a text"),
        ('ledger = "a"\nleger = "b"', "leger is not known; known here are "),
        ('ledger = "a"\nledger_env = "B"', "ledger and ledger_env are both given"),
        ('ledger_env = "NOT_SET_ANYWHERE"', "ledger_env names the environment variable NOT_SET_ANYWHERE"),
        ('ledger_file = "nowhere"', "ledger_file names .*nowhere, which cannot be read: No such file"),
        ('ledger = "a"\nsmtp = 3', "smtp must be a table"),
        ('ledger = "a"\n[smtp]', "smtp.host is missing"),
        ('ledger = "a"\n[smtp]\nhost = "m"\nport = 0', "smtp.port is 0, but must be a whole number from 1 to 65535"),
        ('ledger = "a"\n[smtp]\nhost = "m"\nport = true', "smtp.port is True, but must be a whole number"),
        ('ledger = "a"\n[smtp]\nhost = "m"\nsecurity = "ssl"', "must be one of starttls, tls, none"),
        ('ledger = "a"\n[smtp]\nhost = "m"\nuser = "u"', "smtp.user and password go together"),
        ('ledger = "a"\n[smtp]\nhost = "m"\ncertificate = "x"', "smtp.certificate names .*x, which is no file"),
        ('ledger = "a"\n[files]', "files.folder is missing"),
        ('ledger = "a"\n[users]', r"users must be a list of tables, each begun with \[\[users\]\]"),
        ('ledger = "a"\n[[users]]', r"users\[1\].address is missing"),
        ('ledger = "a"\n[[users]]\naddress = "ann"', "is 'ann', which is no mail address"),
        (
            'ledger = "a"\n[[users]]\naddress = "a@b"\n[[users]]\naddress = "A@b"',
            r"users\[2\].address is 'a@b' for the",
        ),
        ('ledger = "a"' + _USER, r"users\[1\].caldav.password is missing \(or give password_file or password_env\)"),
        ('ledger = "a"' + _USER + 'pasword = "x"\npassword = "y"', r"caldav.pasword is not known"),
        ('ledger = "a"' + _USER.replace("https", "ftp") + 'password = "x"', "url is .* must begin with https://"),
        ('ledger = "a"' + _USER.replace("dav.", "u:p@dav.") + 'password = "x"', "url holds a user name or a password"),
    ],
)
def test_what_is_wrong_is_one_sentence_that_names_the_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "assistant.toml"))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_an_empty_secret_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ValueError, match=r"ledger_file names .*, which is empty"):
        read(tmp_path, 'ledger_file = "empty"')


def test_a_file_that_is_not_there_is_an_oserror_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.toml"):
        read_configuration(tmp_path / "nowhere.toml")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too much for settings"):
        read(tmp_path, "#" * (1 << 20) + "\n")


def test_whom_the_assistant_may_answer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "assistant.toml"
    lines = [
        'ledger = "a.db"',
        "[trust]",
        'servers = ["MX.example.org"]',
        'deny = ["vendor.example"]',
        "per_domain = 4",
    ]
    path.write_text("\n".join([*lines, 'delegates = { "Boss@x.org" = ["pa@y.org"] }']), encoding="utf-8")
    trust = read_configuration(path).trust
    assert (trust.servers, trust.deny, trust.per_domain) == (("mx.example.org",), ("vendor.example",), 4)
    assert trust.delegates == {"boss@x.org": ("pa@y.org",)}


def test_a_misspelt_key_of_whom_to_answer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "assistant.toml"
    path.write_text('ledger = "a.db"\n[trust]\ndenied = ["x"]\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"trust\.denied is not known"):
        read_configuration(path)


def test_a_provider_to_sign_in_at_is_read_and_must_be_reached_by_https(tmp_path: Path) -> None:
    path = tmp_path / "assistant.toml"
    lines = 'ledger = "a.db"\n[oidc]\nissuer = "{}"\nclient_id = "kinfolk"\nclient_secret = "s"\n'
    path.write_text(lines.format("https://login.example.org/"), encoding="utf-8")
    provider = read_configuration(path).oidc
    assert provider is not None
    assert (provider.issuer, provider.client_id) == ("https://login.example.org", "kinfolk")
    assert "client_secret" not in repr(provider)
    path.write_text(lines.format("http://login.example.org"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"oidc\.issuer is .* must begin with https://"):
        read_configuration(path)
