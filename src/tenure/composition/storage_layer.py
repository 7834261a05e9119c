"""The store of a node: its engine and the engine's upkeep; and where files of IMPORT and EXPORT are.

Walk: `node.py` calls `build_storage` first; this calls `open_engine` and makes the `Store`.
"""

from typing import NamedTuple

from tenure.composition.node_start import NodeStart
from tenure.kv.store import Store
from tenure.storage.addresses import OpenEngine, open_engine
from tenure.storage.locations import Locations
from tenure.storage.upkeep import upkeep


class StorageLayer(NamedTuple):
    engine: OpenEngine
    store: Store
    locations: Locations


def build_storage(start: NodeStart) -> StorageLayer:
    options, env, lifecycle = start
    engine = open_engine(options.store, env)
    lifecycle.on_stop_close("engine", engine.close)
    store = Store(engine, env, settings=options.settings)
    lifecycle.on_stop_close("store", store.close)
    lifecycle.run(*upkeep(engine, env, store.max_offset_micros))
    locations = Locations(
        options.files or None,
        endpoints=options.endpoints,
        has_implicit_credentials=options.has_implicit_credentials,
    )
    locations.make_directory()
    return StorageLayer(engine, store, locations)
