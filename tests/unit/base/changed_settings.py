"""The settings that differ from their defaults, as texts from which they can be read again."""

from tenure.base.settings import Settings


def changed_texts(settings: Settings) -> dict[str, str]:
    return {each.name: settings.text(each.name) for each in settings if settings[each] != each.default}
