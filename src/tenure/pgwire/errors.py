"""What can be wrong with bytes from a client.

    UserError
    └── ProtocolViolation   08P01  a message or a value that ends too early, or makes no sense

Walk: `pgwire.codecs` and the messages' parsers raise it; the connection answers with it.
"""

from tenure.base.errors import UserError


class ProtocolViolation(UserError):
    sqlstate = "08P01"
