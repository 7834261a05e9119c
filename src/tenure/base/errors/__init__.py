"""The error tree: each class has PostgreSQL's SQLSTATE; its root says whose fault it is and who must act.

    TenureError
    ├── RetryError                     40001  run the transaction again; nothing was changed
    │   ├── BelowMark                  40001  its read time was collected or cleaned meanwhile
    │   ├── BaseMoved                  40001  revisions moved to the lake: start over with its newest manifest
    │   ├── DeadlinePassed             40001  the commit timestamp reached the transaction's deadline
    │   ├── DeadlockDetected           40P01  transactions wait for each other, and this one gave way
    │   ├── DescriptorChanged          40001  a version came after the transaction began
    │   └── ClusterFinalized           40001  expiring leases ended meanwhile
    ├── OutcomeUnknown                 40003  it may have committed; ask before doing it again
    ├── TooEarly                       55000  the commit timestamp is not after "not before": wait
    ├── SessionLost                    57P01  this node must stop what it does under that session
    ├── CorruptData                    XX001  stop, never repair silently
    ├── StoreError                     58000  the operator or the machine must act; nothing was changed
    │   ├── Unavailable                08006  the store cannot be reached just now
    │   │   └── Disconnected           08006  the connection broke while an answer was awaited
    │   │       └── Abandoned          08006  the waiting thread was told to stop
    │   ├── AccessDenied               28P01  wrong password or missing rights
    │   ├── ClockAhead                 58000  this node's clock is too far ahead to commit
    │   ├── WrongLake                  55000  the lake is not the one that belongs to the store
    │   ├── NewerFormat                0A000  written by a newer Tenure
    │   ├── UnfitEngine                0A000  the engine fails the start-up probe
    │   ├── DiskFull                   53100
    │   ├── InputOutput                58030
    │   ├── FileMissing                58P01  a file or directory that was named is not there
    │   ├── FileExists                 58P02  files are written once: the name is taken
    │   ├── NoPermission               42501  the system or the object store does not let this node do it
    │   ├── NoJava                     58000  bulk work needs it
    │   ├── SparkRefused               58000  no Spark session could be had
    │   │   └── JavaRefused            58000  Java ended before it listened
    │   ├── MasterUnreachable          58000  Spark's master is away, or does not answer; it may come back
    │   └── SparkLost                  58000  Spark has ended; another process may do the work
    ├── TemporaryTablesLost            55000  with the node session that they belonged to
    ├── RowsIncomplete                 XX000  start over, another way; clients never see it
    ├── TooManyConnections             53300
    ├── QueryCanceled                  57014  the client, or another session, said so
    ├── StatementTimeout               57014  the statement's time is up
    ├── Terminated                     57P01  the door tells the client why (FATAL) and closes
    │   ├── ShuttingDown               57P01  the node drains, or an administrator said so
    │   ├── LocksLost                  57P01  advisory locks that the node has lost
    │   ├── LoginTooSlow               08P01
    │   ├── IdleTooLong                57P05
    │   ├── IdleInTransaction          25P03
    │   └── TransactionTimeout         25P04
    ├── FenceLost                      57P01  the run may no longer write: its claim moved on
    ├── JobFailed                      XX000  has the SQLSTATE of what was wrong
    ├── NoSuitableProcess              58000  no process has what the job needs
    ├── KernelFailed                   XX000  a bug in a kernel
    ├── SparkFailed                    XX000  Spark could not run the tasks
    └── UserError                      22000  tell the client; the statement was wrong or impossible
        ├── CardinalityViolation       21000  more rows than one, or one row twice
        ├── NotOneDimension            22000
        ├── StringTooLong              22001
        ├── OutOfRange                 22003  a number that its type cannot hold
        ├── NullNotAllowed             22004
        ├── InvalidDatetime            22007
        ├── DatetimeOverflow           22008
        ├── InvalidZoneOffset          22009  an offset from UTC that is too large
        ├── SequenceExhausted          2200H
        ├── SubstringError             22011
        ├── DivisionByZero             22012
        ├── BadFrameOffset             22013  of a window's frame
        ├── InvalidNtile               22014
        ├── IntervalOverflow           22015
        ├── InvalidNthValue            22016
        ├── InvalidRegex               2201B
        ├── InvalidLogarithm           2201E
        ├── InvalidPower               2201F
        ├── InvalidBucketCount         2201G  of width_bucket
        ├── NegativeLimit              2201W
        ├── NegativeOffset             2201X
        ├── UnknownCharacter           22021  a zero byte, half a surrogate pair or bad UTF-8 in text
        ├── InvalidParameter           22023
        ├── InvalidEscape              22025
        ├── SubscriptError             2202E
        ├── ArraySizesDiffer           2202E
        ├── InvalidText                22P02  text that is no value of the type
        ├── InvalidBinary              22P03
        │   └── BytesLeft              22P03  a binary value that is longer than its type
        ├── UntranslatableCharacter    22P05
        ├── Undefined                  42000  a name stands for nothing
        │   ├── UndefinedDatabase      3D000
        │   ├── UndefinedSchema        3F000
        │   ├── UndefinedTable         42P01  tables, views, sequences and indexes
        │   ├── UndefinedColumn        42703
        │   ├── UndefinedFunction      42883
        │   ├── UndefinedParameter     42P02  $1 that nothing gives a value
        │   ├── UndefinedPrepared      26000  prepared statements
        │   ├── UndefinedCursor        34000
        │   ├── UndefinedSavepoint     3B001
        │   └── UndefinedObject        42704  types, constraints, roles
        │       ├── UndefinedVariable  42704  settings of a session or the cluster
        │       ├── UnknownJob         42704
        │       └── ProtectionNotFound 42704
        ├── Duplicate                  42000  a name is taken
        │   ├── DuplicateDatabase      42P04
        │   ├── DuplicateSchema        42P06
        │   ├── DuplicateRelation      42P07  tables, views, sequences and indexes
        │   ├── DuplicateColumn        42701
        │   ├── DuplicateAlias         42712
        │   ├── DuplicatePrepared      42P05
        │   ├── DuplicateCursor        42P03
        │   └── DuplicateObject        42710  types, labels, constraints, roles
        ├── Ambiguous                  42000  a name stands for two
        │   ├── AmbiguousColumn        42702
        │   ├── AmbiguousFunction      42725
        │   └── AmbiguousAlias         42P09  a table or an index
        ├── InvalidName                42602
        │   ├── NameTooLong            42622
        │   └── ReservedName           42939
        ├── DependentObjects           2BP01  others need it; `detail` names them
        ├── SyntaxFault                42601
        │   └── WindowFault            42P20  a window or its frame
        ├── DatatypeMismatch           42804
        │   ├── UntypedLiteral         42804  an untyped literal where nothing says its type
        │   └── CannotMatch            42846  the types of a set operation or a CASE
        ├── CannotCast                 42846
        ├── IndeterminateDatatype      42P18  nothing says the type of a parameter or an empty array
        ├── InconsistentParameter      42P08  one parameter, two types
        ├── GroupingFault              42803  an aggregate where none may be, a column that is not grouped
        ├── WrongRecursion             42P19
        ├── InvalidColumnReference     42P10  by position, in DISTINCT ON, ON CONFLICT, LATERAL
        ├── WrongObjectType            42809  a view where a table must be, and other kinds mixed up
        ├── GeneratedAlways            428C9  a generated column that is given a value
        ├── InvalidDefinition          42000  what was asked for makes no sense
        │   ├── InvalidCursor          42P11
        │   ├── InvalidSchema          42P15
        │   ├── InvalidTable           42P16
        │   ├── InvalidObject          42P17  not immutable where it must be, for example
        │   └── InvalidForeignKey      42830
        ├── InsufficientPrivilege      42501  the role may not
        ├── InvalidGrant               0LP01  a cycle of roles, a privilege that its object cannot have
        ├── NotSupported               0A000  PostgreSQL has it, Tenure does not
        │   └── PlanChanged            0A000  the result of a prepared statement would have other columns
        ├── WrongState                 55000  the object is not as it would have to be
        │   ├── IllegalStep            55000  of a job
        │   └── OlderInstances         55000  of the cluster's version
        ├── ObjectInUse                55006  a role that is logged in, a name that older leases resolve
        ├── FixedVariable              55P02  a setting that cannot be changed now
        ├── LockNotAvailable           55P03  another has it, and waiting was not wanted or took too long
        ├── UnsafeNewValue             55P04  a label of an enum that is on its way
        ├── SnapshotTooOld             72000  reads below a threshold: the history is gone
        ├── ConstraintViolation        23000  names the table, the constraint and the column
        │   ├── UniqueViolation        23505
        │   ├── NotNullViolation       23502
        │   ├── CheckViolation         23514
        │   └── ForeignKeyViolation    23503
        │       └── RestrictViolation  23001
        ├── OutOfMemory                53200
        ├── TooManyNames               53400  prepared statements or cursors
        ├── TooManyProtections         53400  records, or targets that they name
        ├── LimitExceeded              54000  a value, a row, an input or a result that is too large
        │   ├── CommitTooLarge         54000
        │   ├── TooComplex             54001  a statement or a value that is nested too deeply
        │   └── TooManyColumns         54011
        ├── ProtocolViolation          08P01  a message or a value that ends too early, or makes no sense
        │   └── TooFewParameters       08P01
        ├── LoginRefused               28000  not this user, not from there, not without TLS
        ├── WrongPassword              28P01  or no such user: clients are not told which
        ├── UnfitCertificate           F0000  the files of --cert and --key cannot be used
        ├── ActiveTransaction          25001  not inside a block, or not after its first statement
        ├── ReadOnlyTransaction        25006
        ├── NoTransaction              25P01
        ├── InFailedTransaction        25P02  only the end of the block is accepted
        ├── ActivePortal               24000  a portal cannot close itself
        ├── NotCommitted               40000  the transaction that declared a schema change
        ├── InputFailed                22000  a location that cannot be read; has the store's SQLSTATE
        ├── RowsRefused                22000  more bad rows than tolerated; has the SQLSTATE of the first
        └── BadFile                    22P04  not of the format that it should have
            ├── BadInput               22P04  of an import
            └── BadDump                22P04  of a dump

    roots        those that say who must act
    store        the store, files, the machine: 08, 40, 53, 58
    values       values: 21, 22
    names        names of objects: 26, 34, 3B, 3D, 3F, 42
    statements   how a statement is written: 42, 0A
    states       what would be right at another time: 55, 72
    constraints  violations of constraints: 23
    limits       too much of something: 53, 54
    sessions     protocol, login, transaction blocks, the end of a session: 08, 24, 25, 28, 57
    jobs         jobs, their input and their processes

Messages name the object in quotes and, where there is one, say what to do in `hint`. Errors of other
libraries are translated once, in the file that owns the library, with `raise ... from`. `assert` is for our
own bugs. Exceptions that only steer the code that raises them are no errors: they stand beside it.

Walk: every package imports its errors from here.
"""

from tenure.base.errors.constraints import *  # noqa: F403
from tenure.base.errors.jobs import *  # noqa: F403
from tenure.base.errors.limits import *  # noqa: F403
from tenure.base.errors.names import *  # noqa: F403
from tenure.base.errors.roots import *  # noqa: F403
from tenure.base.errors.sessions import *  # noqa: F403
from tenure.base.errors.statements import *  # noqa: F403
from tenure.base.errors.states import *  # noqa: F403
from tenure.base.errors.store import *  # noqa: F403
from tenure.base.errors.values import *  # noqa: F403
