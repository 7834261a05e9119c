"""Abbreviations of time zones, as PostgreSQL's default set has them: an offset from UTC, or a place.

The abbreviation of a place has the offset that it had there at the time in question.

Walk: `expr.types.zones` reads these.
"""

_STANDARD = """
-10    hst taht
-9:30  mart
-9     akst gamt
-8     pst
-7     mst
-6     cst galt
-5     act cot est pet
-4     amt ast bot
-3:30  nft nst
-3     bra brt gft pmst uyt wgt
-2     fnt
-1     azot egt
+0     gmt uct ut utc wet z zulu
+1     cet met mez wat
+2     eet ist sast
+3     eat fet
+3:30  irt
+4     mut ret sct
+4:30  aft
+5     mvt pkt tft tjt uzt
+5:45  npt
+6     almt bdt btt xjt
+6:30  mmt
+7     cxt ict wast
+8     awst bnt bort cct hkt myt pht
+8:45  acwst
+9     jayt jst kst pwt
+9:30  acst cast
+10    aest chut ddut ligt mpt pgt trut yapt
+10:30 lhst
+11    pont vut
+12    fjt gilt mht nzst nzt tvt wakt wft
+12:45 chast
+13    tot
"""
_SUMMER = """
-8     akdt
-7     pdt
-6     mdt
-5     cdt
-4     edt
-3     adt clst pyst
-2:30  ndt
-2     brst pmdt uyst wgst
-1     fnst
+0     azost egst
+1     bst wetdst
+2     bdst cest cetdst mest mesz metdst
+3     eest eetdst idt
+4     msd
+5     must
+6     kgst pkst uzst yekst
+7     almst
+8     wadt
+9     awsst ulast wdt
+10    kdt
+10:30 acdt acsst cadt sadt
+11    aedt aesst
+13    fjst nzdt
+13:45 chadt
"""
_PLACES = """
America/Argentina/Buenos_Aires arst art
America/Asuncion pyt
America/Caracas vet
America/Guyana gyt
America/Santiago clt
Antarctica/Davis davt
Antarctica/Mawson mawt
Asia/Anadyr anast anat
Asia/Ashgabat tmt
Asia/Baku azst azt
Asia/Bishkek kgt
Asia/Colombo lkt
Asia/Irkutsk irkst irkt
Asia/Kamchatka petst pett
Asia/Krasnoyarsk krast krat
Asia/Magadan magst magt
Asia/Novosibirsk novst novt
Asia/Omsk omsst omst
Asia/Singapore sgt
Asia/Tbilisi gest get
Asia/Ulaanbaatar ulat
Asia/Vladivostok vlast vlat
Asia/Yakutsk yakst yakt
Asia/Yekaterinburg yekt
Asia/Yerevan amst
Atlantic/Stanley fkst fkt
Australia/Lord_Howe lhdt
Europe/Moscow msk
Europe/Volgograd volt
Indian/Chagos iot
Pacific/Easter easst east
Pacific/Fakaofo tkt
Pacific/Kiritimati lint
Pacific/Kosrae kost
Pacific/Niue nut
Pacific/Rarotonga ckt
"""

_ELSEWHERE = """
    addt admt ahdt ahst apt awdt awt bmt cat cemt chst cmt cpt cwt dmt emt ept ewt ffmt fmt gdt gst hdt
    hkst hkwt hmt hpt hwt iddt imt jdt jmt kmt lmt lst mdst mwt nddt nwt nzmt plmt pmmt pmt ppmt ppt qmt
    rmt sdmt set sjmt smt sst tbmt wemt west wib wit wita wmt yddt ydt ypt yst ywt zmt
"""


def _offsets(table: str) -> dict[str, int]:
    """Seconds ahead of UTC."""
    rows = [line.split() for line in table.strip().splitlines()]
    return {word: _seconds(offset) for offset, *words in rows for word in words}


def _seconds(offset: str) -> int:
    hours, _, minutes = offset[1:].partition(":")
    seconds = int(hours) * 3600 + int(minutes or 0) * 60
    return -seconds if offset[0] == "-" else seconds


STANDARD, SUMMER = _offsets(_STANDARD), _offsets(_SUMMER)
EVERYWHERE = frozenset(("gmt", "uct", "ut", "utc", "z", "zulu"))
"""Abbreviations that mean the same everywhere."""
LOCAL = frozenset(_ELSEWHERE.split())
"""Other abbreviations of some place in IANA's data: valid only in a session whose zone is that place."""
PLACES = {word: place for place, *words in map(str.split, _PLACES.strip().splitlines()) for word in words}
