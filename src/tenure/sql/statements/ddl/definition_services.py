"""The services of DDL statements besides their session.

Walk: `sql.clients.sql_sessions` makes one from the services of the node; `statements.ddl.definition.Definer`
hands it to the statements.
"""

from dataclasses import dataclass

from tenure.base.env import Env
from tenure.catalog.accounts.users import Users
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.retention.snapshots import NamedSnapshots
from tenure.schema_change.changer import SchemaChanger
from tenure.table.sequences import Sequences


@dataclass(frozen=True, slots=True)
class DefinitionServices:
    env: Env
    store: Store
    catalog: Catalog
    leases: LeaseScheme
    changer: SchemaChanger
    users: Users
    sequences: Sequences
    snapshots: NamedSnapshots
    settings: ClusterSettings
    jobs: Jobs
