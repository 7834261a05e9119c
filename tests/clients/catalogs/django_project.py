"""A Django project in one file: `python django_project.py HOST PORT USER DATABASE` migrates, and prints JSON.

It runs as a process of its own, since Django's settings are those of a process.
"""

import io
import json
import sys

import django  # type: ignore[import-untyped]
from django.conf import settings  # type: ignore[import-untyped]
from django.core.management import call_command  # type: ignore[import-untyped]
from django.db import connection  # type: ignore[import-untyped]

APPS = ("contenttypes", "auth", "sessions", "admin", "messages")


def main(host: str, port: str, user: str, database: str) -> None:
    server = {"HOST": host, "PORT": port, "USER": user, "NAME": database}
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **server}},
        INSTALLED_APPS=[f"django.contrib.{each}" for each in APPS],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()
    call_command("migrate", verbosity=0)
    again, models, resets = (io.StringIO() for _ in range(3))
    call_command("migrate", stdout=again)
    call_command("inspectdb", stdout=models)
    call_command("sqlsequencereset", "auth", stdout=resets)
    print(
        json.dumps(
            {
                "again": again.getvalue(),
                "models": models.getvalue(),
                "resets": resets.getvalue(),
                "members": _members(),
                **_introspected(),
            },
            default=str,
        )
    )


def _members() -> list[str]:
    from django.contrib.auth.models import Group, User  # type: ignore[import-untyped]

    user = User.objects.create_user("bob", password="secret")
    user.groups.add(Group.objects.create(name="editors"))
    return list(User.objects.filter(groups__name="editors").values_list("username", flat=True))


def _introspected() -> dict[str, object]:
    look = connection.introspection
    with connection.cursor() as cursor:
        return {
            "tables": sorted(look.table_names(cursor)),
            "constraints": dict(sorted(look.get_constraints(cursor, "auth_permission").items())),
            "relations": look.get_relations(cursor, "auth_permission"),
            "sequences": look.get_sequences(cursor, "auth_user"),
            "key": look.get_primary_key_columns(cursor, "auth_user"),
        }


if __name__ == "__main__":
    main(*sys.argv[1:])
