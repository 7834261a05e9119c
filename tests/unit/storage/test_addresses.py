"""What an address of a store says besides where it is."""

import pytest

from tenure.base.errors import InvalidParameter
from tenure.storage.addresses import CONNECTIONS, _split_connections

HOST = "postgresql://user@host/database"


@pytest.mark.parametrize(
    ("address", "dsn", "connections"),
    [
        (HOST, HOST, CONNECTIONS),
        (f"{HOST}?connections=40", HOST, 40),
        (f"{HOST}?connections=40&sslmode=require", f"{HOST}?sslmode=require", 40),
        (f"{HOST}?sslmode=require&connections=40", f"{HOST}?sslmode=require", 40),
        (f"{HOST}?a=1&connections=7&b=2", f"{HOST}?a=1&b=2", 7),
    ],
)
def test_the_number_of_connections_is_taken_out_of_the_address(
    address: str, dsn: str, connections: int
) -> None:
    assert _split_connections(address) == (dsn, connections)


@pytest.mark.parametrize("number", ["0", "501", "many", "", "-1"])
def test_a_number_that_makes_no_sense_is_refused(number: str) -> None:
    with pytest.raises(InvalidParameter, match="a number from 1 to 500"):
        _split_connections(f"{HOST}?connections={number}")
