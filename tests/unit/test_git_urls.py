import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.files.git_urls import LOCAL, public_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (b"https://example.org/a.git", "https://example.org/a.git"),
        (b"https://user:ghp_secret@example.org:8443/a.git", "https://example.org:8443/a.git"),
        (b"https://ghp_secret@example.org/a.git", "https://example.org/a.git"),
        (b"https://us@er:p@ss@example.org/a", "https://example.org/a"),
        (b"HTTPS://u:p@example.org/a", "https://example.org/a"),
        (b"https://example.org/a?private_token=secret#x", "https://example.org/a"),
        (b"https://example.org?token=secret", "https://example.org"),
        (b"https://user:sec/ret@example.org/a", "https://(not shown)"),
        (b"https://user:12/3@example.org/a", "https://(not shown)"),
        (b"ssh://git@example.org/a.git", "ssh://git@example.org/a.git"),
        (b"ssh://git:secret@example.org/a.git", "ssh://example.org/a.git"),
        (b"git@example.org:team/a.git", "git@example.org:team/a.git"),
        (b"example.org:team/a.git", "example.org:team/a.git"),
        (b"user:secret@example.org:a.git", "(not shown)"),
        (b"secret@example", "(not shown)"),
        (b"/home/somebody/a", LOCAL),
        (b"../a", LOCAL),
        (b"C:\\Users\\somebody\\a", LOCAL),
        (b"file:///home/somebody/a", LOCAL),
        (b"ext::sh -c secret", "ext::(not shown)"),
        (b"hg::https://u:secret@example.org/a", "hg::https://example.org/a"),
        (b"https://example.org/\x1b[2J\xff", r"https://example.org/\x1b[2J\xff"),
        (b"", LOCAL),
    ],
)
def test_public_url(url: bytes, shown: str) -> None:
    assert public_url(url) == shown


@given(
    st.sampled_from(["https", "http", "ftp", "git", "ssh"]),
    st.text("abc@:?#%/", max_size=6),
    st.text("xyz@:?#%/", max_size=6),
)
def test_a_password_never_shows(scheme: str, user: str, rest: str) -> None:
    assert "SECRET" not in public_url(f"{scheme}://{user}:SECRET{rest}@example.org/a.git".encode())
