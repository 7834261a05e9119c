"""Values that a session's expressions draw: random UUIDs and numbers, and those of sequences.

Walk: `sql.session.session_state` makes one; the Context of each statement refers to it.
"""

from collections.abc import Callable
from uuid import UUID

from tenure.base.errors import UndefinedTable
from tenure.base.random_numbers import RandomNumbers
from tenure.catalog.descriptors.definitions import Sequence
from tenure.kv.transaction import Transaction
from tenure.sql.session.activity import Activity
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.services import Services
from tenure.table.sequences import SessionSequences

UUID_BITS, UUIDS_AT_ONCE = 128, 16
UUID_MASK = (1 << UUID_BITS) - 1
NUMBER_MASK = (1 << 64) - 1


class GeneratedValues:
    def __init__(
        self, services: Services, activity: Activity, fence: Callable[[Transaction | None], None]
    ) -> None:
        self._env = services.env
        self._activity = activity
        self._random: list[int] = []
        """Drawn and not used yet."""
        self._block: Block | None = None
        """The block in whose catalog the sequences are looked up."""
        self._sequences = SessionSequences(
            services.sequences, self._sequence, self._may_wait, self._may_write, fence
        )
        self.discard_sequences = self._sequences.discard
        self.numbers = RandomNumbers(lambda: self._bits() & NUMBER_MASK)

    def uuid(self) -> UUID:
        return UUID(int=self._bits(), version=4)

    def _bits(self) -> int:
        """As many as a uuid has."""
        if not self._random:
            # Each draw is a system call, which releases the GIL: so many are drawn at once.
            drawn = self._env.rng.getrandbits(UUID_BITS * UUIDS_AT_ONCE)
            self._random = [(drawn >> UUID_BITS * n) & UUID_MASK for n in range(UUIDS_AT_ONCE)]
        return self._random.pop()

    def sequences_in(self, block: Block) -> SessionSequences:
        """The sequence values that this session has drawn, over the catalog as the block sees it."""
        self._block = block
        return self._sequences

    def _sequence(self, id: int) -> Sequence:
        assert self._block is not None
        found = self._block.descriptor(id)
        if not isinstance(found, Sequence):
            raise UndefinedTable(f"could not open relation with OID {id}")
        return found

    def _may_write(self, function: str, id: int) -> None:
        block = self._block
        assert block is not None
        block.require_writable(f"{function}()")
        if block.draft and block.new_sequences.is_unknown(block.use, id):
            self._may_wait()
            block.new_sequences.note(block.use, id)

    def _may_wait(self) -> None:
        """Called before the store is written: raises on the door's loop."""
        if self._activity.is_inline:
            raise NotShort
