"""The invented names of the universe: people, cities, jobs, hobbies, as many as are asked for.

Up to the size of the hand-made lists the values come from those; past it they are composed (syllables for names and
cities, a qualifier before a job or hobby), always in the same order, never twice. It knows nothing of who bears what.
"""

from __future__ import annotations

from collections.abc import Iterator

from kbgym.errors import BadInput

WOMEN = """
    Adira Belka Brielle Calla Corisande Darya Edda Elspeth Fenella Freydis Gisela Halina Ilka Ingrid Jorunn Kasimira
    Kerensa Liv Lowri Mairwen Minka Morwenna Nerys Odile Orla Perpetua Philippa Ragna Rosamund Saoirse Senna Solveig
    Tamsin Tirzah Ulrika Verity Wilhelmina Yseult Zdenka Zofia
""".split()

MEN = """
    Aldous Anselm Barnaby Bertil Caspian Cormac Dragan Emeric Evander Fabian Florian Gawain Goran Hamish Henrik Ignaz
    Ivo Jarek Joachim Kester Klaus Leif Ludovic Magnus Milan Ned Olaf Otto Peregrine Piers Radek Roland Sander Sixten
    Tobin Torvald Ulric Valdemar Wendell Zoltan
""".split()

SURNAMES = """
    Aldercroft Applegarth Barrowman Beckonfield Birchall Bramwell Brockway Calder Carrowmore Chantrey Coppinger
    Cresswell Dalgarno Drayhorse Duxbury Eddowe Ellerby Fairlamb Farthing Garrick Gilchrist Greatorex Haldane Harkaway
    Heskett Holloway Inchbald Jernigan Kettleby Kirkbride Lampton Larkhill Lowther Mallory Merriweather Millichap
    Nettleton Oldroyd Otterburn Pargeter Penhaligon Prendergast Quarmby Rainbird Redfern Rookwood Sallow Satterthwaite
    Skelton Stallybrass Tallentire Tremayne Tunnicliffe Umfreville Venning Wainwright Wedderburn Winterbourne Wyvill
    Yelland
""".split()

CITIES = """
    Alderquay Bexmarch Caldonport Dunmere Elverstead Farrowmouth Glimmerton Holmcastle Isenbridge Jarrowfen Kelderwharf
    Loxhaven Merrowgate Nethercombe Oakenstrand Pellworth Rushmarket Saltersea Tarnmouth Wolverhythe
""".split()

JOBS = """
    accountant actuary anaesthetist apiarist architect astronomer auctioneer baker barber botanist bricklayer brewer
    butcher carpenter cellist chemist choreographer coppersmith curator dentist drummer electrician epidemiologist
    ferryman florist geologist gamekeeper hatter historian interpreter judge lexicographer librarian lutenist
    midwife miller optician paramedic perfumer pharmacist plumber puppeteer radiographer sculptor stonecutter
    surveyor thatcher typesetter veterinarian watchmaker
""".split()

_HOBBIES = """
    abseiling, badminton, ballroom dancing, basket weaving, beachcombing, bell ringing, bookbinding, bouldering, bowls,
    canoeing, card tricks, choral music, coin collecting, cooking, crochet, croquet, curling, darts, dominoes, falconry,
    fell running, genealogy, hang gliding, horse riding, ice hockey, karaoke, lace making, lawn tennis, marquetry,
    metal detecting, orienteering, paper folding, parkour, poetry, rock balancing, snooker, storytelling, table tennis,
    trainspotting, wood carving
"""
HOBBIES = [hobby.strip() for hobby in _HOBBIES.split(",")]

_WOMEN_PARTS = (
    "Al Bre Ca De El Fi Gi Ha Is Jo Ka Li Ma Ni Os Pa Re Sa Ti Va".split(),
    "be da fi le li mi na ne ri ro sa the ve vi".split(),
    "dra lia line lla mira na nne ra sa wen".split(),
)
_MEN_PARTS = (
    "Ar Bal Cor Dor Er Fer Gal Hal In Jar Kor Lan Mar Nor Or Per Ro Sig Tor Vil".split(),
    "ba de di go ha le li mo ne ri tha va ve vo".split(),
    "dan don gar lf mir mond ric ron ston win".split(),
)
_SURNAME_PARTS = (
    """Ack Amber Bar Black Bram Brind Cold Crook Dar Dray El Ens Fal Fen Gad Gran Hag Hart Hind Hol Ick Jel Kel Kin Lang
    Lin Lock Mel Mos Nor Nut Ock Pad Pen Pol Quin Rad Rams Rip Sand Sed Shel Stan Swin Tad Thorn Ul Wat Whit
    Yar""".split(),
    """acre bank bottom by cote croft dike fold garth gill grave greave head hirst ley low man more nell rick rigg row
    shaw slade stock ton wick wood worthy yard""".split(),
)
_CITY_PARTS = (
    """Ab Al Ar Bel Ber Bra Car Cal Cor Dal Der Dun Ed El Er Fal Far Gar Gel Gor Hal Har Hel Ister Kal Kin Lan Lor Mar
    Mel Mor Nar Nor Or Pel Por Ros Sal Sel Tal Tor Var Vel Wen Win Zel""".split(),
    "a an be da en er i in la le lin mi no o or ra ri ti un ve".split(),
    """bourne bridge burgh bury castle chester dale ferry firth gate ham harbour haven hythe minster mouth ness pool
    port quay sea stead strand ville wharf""".split(),
)
_JOB_QUALIFIERS = (
    "apprentice assistant deputy retired travelling".split(),
    """alpine amber antique arctic bamboo basalt brass bronze canal cathedral cedar ceramic chalk coastal cobalt copper
    coral cotton county crystal desert ebony enamel felt forest glacier granite harbour heather highland iron island
    ivory jade lakeside leather linen marble meadow mineral monastery moorland mountain museum night opal palace parish
    pewter porcelain prison quarry railway river royal silk silver slate steam tin""".split(),
)
_HOBBY_QUALIFIERS = (
    "amateur charity club family solo".split(),
    """acrobatic alpine ancient arctic autumn backward barefoot blindfold candlelit carnival classical clifftop
    competitive cooperative country dawn desert dockside evening experimental festival folk forest freestyle garden
    historical indoor island lakeside lowland marathon medieval midnight miniature moonlit mountain musical nautical
    fireside orchard outdoor pairs polar rainy riverside rooftop rural seaside silent speed spring summer synchronised
    team tropical twilight underground urban vintage winter""".split(),
)


def women(count: int) -> list[str]:
    return _first("first names for women", count, WOMEN, _joined(_WOMEN_PARTS))


def men(count: int) -> list[str]:
    return _first("first names for men", count, MEN, _joined(_MEN_PARTS))


def surnames(count: int) -> list[str]:
    return _first("surnames", count, SURNAMES, _joined(_SURNAME_PARTS))


def cities(count: int) -> list[str]:
    return _first("cities", count, CITIES, _joined(_CITY_PARTS))


def jobs(count: int) -> list[str]:
    return _first("jobs", count, JOBS, _qualified(_JOB_QUALIFIERS, JOBS))


def hobbies(count: int) -> list[str]:
    return _first("hobbies", count, HOBBIES, _qualified(_HOBBY_QUALIFIERS, HOBBIES))


def _first(what: str, count: int, base: list[str], composed: Iterator[str]) -> list[str]:
    """The first `count` different values, hand-made ones before composed ones."""
    found = dict.fromkeys(base[:count])
    while len(found) < count:
        value = next(composed, None)
        if value is None:
            raise BadInput(f"the vocabulary has only {len(found)} {what}, {count} are needed; ask for fewer people.")
        found[value] = None
    return list(found)


def _joined(parts: tuple[list[str], ...]) -> Iterator[str]:
    """Every combination of one syllable of each list, neighbours in the order looking unlike each other."""
    total = 1
    for part in parts:
        total *= len(part)
    for number in range(total):
        # 7919 is prime and divides no product of list lengths here, so that this visits every combination once.
        rest, word = number * 7919 % total, ""
        for part in parts:
            rest, place = divmod(rest, len(part))
            word += part[place]
        yield word


def _qualified(qualifiers: tuple[list[str], list[str]], nouns: list[str]) -> Iterator[str]:
    """'copper engraver', and when those run out 'retired copper engraver'."""
    outer, inner = qualifiers
    pairs = [
        f"{inner[(start + place) % len(inner)]} {noun}"
        for start in range(len(inner))
        for place, noun in enumerate(nouns)
    ]
    yield from pairs
    yield from (f"{word} {pair}" for word in outer for pair in pairs)
