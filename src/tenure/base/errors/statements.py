"""What is wrong with a statement as it is written: syntax, types, definitions, rights (42), no support (0A).

Walk: `sql.text`, `sql.bind`, `expr.tree`, `catalog.changes` and the statements raise these.
"""

from tenure.base.errors.roots import UserError


class SyntaxFault(UserError):
    sqlstate = "42601"


class WindowFault(SyntaxFault):
    """The grammar finds some of these, the binder the others."""

    sqlstate = "42P20"


class DatatypeMismatch(UserError):
    sqlstate = "42804"


class UntypedLiteral(DatatypeMismatch):
    pass


class CannotMatch(DatatypeMismatch):
    sqlstate = "42846"


class CannotCast(UserError):
    sqlstate = "42846"


class IndeterminateDatatype(UserError):
    sqlstate = "42P18"


class InconsistentParameter(UserError):
    sqlstate = "42P08"


class GroupingFault(UserError):
    sqlstate = "42803"


class WrongRecursion(UserError):
    sqlstate = "42P19"


class InvalidColumnReference(UserError):
    sqlstate = "42P10"


class WrongObjectType(UserError):
    sqlstate = "42809"


class GeneratedAlways(UserError):
    sqlstate = "428C9"


class InvalidDefinition(UserError):
    sqlstate = "42000"


class InvalidCursor(InvalidDefinition):
    sqlstate = "42P11"


class InvalidSchema(InvalidDefinition):
    sqlstate = "42P15"


class InvalidTable(InvalidDefinition):
    sqlstate = "42P16"


class InvalidObject(InvalidDefinition):
    sqlstate = "42P17"


class InvalidForeignKey(InvalidDefinition):
    sqlstate = "42830"


class InsufficientPrivilege(UserError):
    sqlstate = "42501"


class InvalidGrant(UserError):
    """A GRANT or REVOKE that makes no sense: a cycle of roles, a privilege that the object cannot have."""

    sqlstate = "0LP01"


class NotSupported(UserError):
    sqlstate = "0A000"


class PlanChanged(NotSupported):
    routine = "RevalidateCachedQuery"
    """PostgreSQL's name: drivers recognize it, not the text, and prepare the statement again."""
