"""Tenure: a SQL system whose schema may change while everything keeps running.

    connection = tenure.connect()

Walk: `connect` is that of `tenure.embedded`, which is loaded when it is called.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

__version__ = "0.1.0"


def connect(url: str = "", *, store: str = "", **options: Any) -> "psycopg.Connection[Any]":
    """A psycopg connection to the node at `url`; or to a node in this process, over `store`, or over one that
    is removed when the connection is closed. `options` are psycopg's.
    """
    embedded = import_module("tenure.embedded")  # by name: every module imports this one, and a node is large
    connection: psycopg.Connection[Any] = embedded.connect(url, store=store, **options)
    return connection
