"""The words that TPC-H's specification makes names, types and comments of (its sections 4.2.2 and 4.2.3).

Comments are sentences of a simplified grammar: noun phrase, verb phrase, and now and then a prepositional
phrase. Nouns, verbs, adjectives and adverbs are the specification's, so `%special%requests%` is about as
frequent as it is meant to be.

Walk: `bench.sql.tpch.generator` draws from these.
"""

import random

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")

NATIONS = (
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)
"""Name, and the number of the region."""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COLORS = _listed(
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished "
    "chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab "
    "firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory "
    "khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty "
    "moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red "
    "rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle "
    "tomato turquoise violet wheat white yellow"
)

TYPES = (
    _listed("STANDARD SMALL MEDIUM LARGE ECONOMY PROMO"),
    _listed("ANODIZED BURNISHED PLATED POLISHED BRUSHED"),
    _listed("TIN NICKEL BRASS STEEL COPPER"),
)
CONTAINERS = (
    _listed("SM LG MED JUMBO WRAP"),
    _listed("CASE BOX BAG JAR PKG PACK CAN DRUM"),
)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")

NOUNS = _listed(
    "foxes ideas theodolites pinto-beans instructions dependencies excuses platelets asymptotes courts "
    "dolphins multipliers sauternes warthogs frets dinos attainments somas braids hockey-players frays "
    "warhorses dugouts notornis epitaphs pearls tithes waters orbits gifts sheaves depths sentiments "
    "decoys realms pains grouches escapades packages requests accounts deposits"
)
VERBS = _listed(
    "sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose sublate "
    "solve thrash promise engage hinder print x-ray breach eat grow impress mold poach serve run dazzle "
    "snooze doze unwind kindle play hang believe doubt"
)
ADJECTIVES = _listed(
    "furious sly careful blithe quick fluffy slow quiet ruthless thin close dogged daring brave "
    "stealthy permanent enticing idle busy regular final ironic even bold silent special pending "
    "express unusual"
)
ADVERBS = _listed(
    "sometimes always never furiously slyly carefully blithely quickly fluffily slowly quietly "
    "ruthlessly thinly closely doggedly daringly bravely stealthily permanently enticingly idly busily "
    "regularly finally ironically evenly boldly silently"
)
PREPOSITIONS = _listed(
    "about above according-to across after against along alongside-of among around at atop before "
    "behind beneath beside besides between beyond by despite during except for from in-place-of inside "
    "instead-of into near of on outside over past since through throughout to toward under until up "
    "upon without with within"
)
AUXILIARIES = _listed("do may might shall will would can could should must")
ENDS = ".;:?!-"


def text_pool(length: int, seed: int) -> str:
    """So many characters of sentences; a comment is a piece of it, as the specification has it."""
    draw = random.Random(seed)
    sentences: list[str] = []
    size = 0
    while size < length:
        sentences.append(_sentence(draw))
        size += len(sentences[-1]) + 1
    return " ".join(sentences)[:length].replace("pinto-beans", "pinto beans")


def _sentence(draw: random.Random) -> str:
    parts = [_noun_phrase(draw), _verb_phrase(draw)]
    if draw.random() < 0.4:
        parts.append(f"{draw.choice(PREPOSITIONS).replace('-', ' ')} the {_noun_phrase(draw)}")
    if draw.random() < 0.3:
        parts.append(_noun_phrase(draw))
    return " ".join(parts) + draw.choice(ENDS)


def _noun_phrase(draw: random.Random) -> str:
    noun = draw.choice(NOUNS)
    match draw.randrange(4):
        case 0:
            return noun
        case 1:
            return f"{draw.choice(ADJECTIVES)} {noun}"
        case 2:
            return f"{draw.choice(ADJECTIVES)}, {draw.choice(ADJECTIVES)} {noun}"
        case _:
            return f"{draw.choice(ADVERBS)} {draw.choice(ADJECTIVES)} {noun}"


def _verb_phrase(draw: random.Random) -> str:
    verb = draw.choice(VERBS)
    match draw.randrange(4):
        case 0:
            return verb
        case 1:
            return f"{draw.choice(AUXILIARIES)} {verb}"
        case 2:
            return f"{verb} {draw.choice(ADVERBS)}"
        case _:
            return f"{draw.choice(AUXILIARIES)} {verb} {draw.choice(ADVERBS)}"
