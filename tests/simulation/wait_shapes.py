"""Clients that wait for a lock in the middle of a transaction, with their pins given up meanwhile.

    write ──► pause ──► a wait, in which others may change the table ──► resume ──► write, as before

Walk: `schema_client.SHAPES` has it under its name; `lease_watch` judges what was used under which lease.
"""

from typing import TYPE_CHECKING

from tenure.catalog.leases.catalog_use import CatalogUse

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient


def await_lock(client: "SchemaClient") -> None:
    def run(use: CatalogUse) -> None:
        table = client.some_table(use)
        if table is None:
            return
        client.write(use, table)
        paused = list(use.pins)
        use.pause()
        seconds = client.knobs.linger_seconds * client.tape.draw(f"{client.name}.wait")
        client.hub.sleep(seconds if client.hub.t < client.knobs.faults_end else 0.1, "wait for a lock")
        use.resume()
        client.record(use).given_up.difference_update(paused)  # whatever the product says, it uses them now
        client.trace.seen["went on after a wait"] += 1
        client.write(use, table)

    client.using(run)


SHAPES = {"await a lock": await_lock}
WEIGHTS = {"await a lock": 0.7}
