"""What the tests share: a database on every engine that the library has."""

import pytest

import touchstone

ENGINES = touchstone.engines()
KEYS = {"sqlcipher": "secret", "lmdb-encrypted": "secret"}


@pytest.fixture(params=ENGINES + ["memory"])
def engine(request):
    return request.param


@pytest.fixture
def opening(engine, tmp_path):
    """Opens the test's database, again and again."""
    if engine == "memory":
        return lambda **options: touchstone.open(in_memory=True, **options)

    def opened(**options):
        if engine in KEYS:
            options.setdefault("passphrase", KEYS[engine])
        return touchstone.open(tmp_path / "test", engine=engine, **options)

    return opened


@pytest.fixture
def db(opening):
    with opening() as database:
        yield database


@pytest.fixture
def memory():
    with touchstone.open(in_memory=True) as database:
        yield database
