"""What can be wrong with a statement that parses, in PostgreSQL's words.

    UserError
    ├── AmbiguousColumn      42702
    ├── AmbiguousAlias       42P09  a table's name that stands for two
    ├── DuplicateAlias       42712
    ├── DuplicateColumn      42701
    ├── UndefinedColumn      42703  (of `expr`)
    ├── UndefinedTable       42P01  (of `sql.bind.relations`)
    ├── GroupingFault        42803  an aggregate where none may be, a column that is not grouped
    ├── WindowFault          42P20
    ├── WrongReference       42P10  of a column by its position, DISTINCT ON
    ├── WrongObject          42809  an aggregate that is called as a function, and the like
    ├── WrongRecursion       42P19
    └── SyntaxFault          42601  (of `sql.text.parse`)

Walk: the modules of the binder raise these.
"""

from tenure.base.errors import UserError


class AmbiguousColumn(UserError):
    sqlstate = "42702"


class AmbiguousAlias(UserError):
    sqlstate = "42P09"


class DuplicateAlias(UserError):
    sqlstate = "42712"


class DuplicateColumn(UserError):
    sqlstate = "42701"


class GroupingFault(UserError):
    sqlstate = "42803"


class WindowFault(UserError):
    sqlstate = "42P20"


class WrongReference(UserError):
    sqlstate = "42P10"


class WrongObject(UserError):
    sqlstate = "42809"


class WrongRecursion(UserError):
    sqlstate = "42P19"


class InvalidForeignReference(UserError):
    sqlstate = "42P10"
