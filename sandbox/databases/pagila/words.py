"""What films, actors and streets are called."""

from __future__ import annotations

LANGUAGES = ("English", "Italian", "Japanese", "Mandarin", "French", "German")
CATEGORIES = (
    "Action", "Animation", "Children", "Classics", "Comedy", "Documentary", "Drama",
    "Family", "Foreign", "Games", "Horror", "Music", "New", "Sci-Fi", "Sports", "Travel",
)  # fmt: skip
RATINGS = ("G", "PG", "PG-13", "R", "NC-17")
FEATURES = ("Trailers", "Commentaries", "Deleted Scenes", "Behind the Scenes")
RATES = ("0.99", "2.99", "4.99")
FIRST_NAMES = (
    "ADA", "BELA", "CARMEN", "DAN", "ELVIS", "FAY", "GINA", "HELEN", "IAN", "JOE", "KARL",
    "LISA", "MENA", "NICK", "OLYMPIA", "PENELOPE", "RITA", "SANDRA", "TIM", "UMA", "VAL",
    "WHOOPI", "ZERO", "RENÉE",
)  # fmt: skip
LAST_NAMES = (
    "AKROYD", "BERGEN", "CHASE", "DAVIS", "DEGENERES", "FAWCETT", "GUINESS", "HOPKINS",
    "JOHANSSON", "KILMER", "LOLLOBRIGIDA", "MCQUEEN", "NOLTE", "O'HARA", "PECK", "STREEP",
    "TEMPLE", "VOIGHT", "WAHLBERG", "ZELLWEGER", "BJÖRK", "ÖSTLUND",
)  # fmt: skip
ADJECTIVES = (
    "ACADEMY", "BRAVEHEART", "CHAMBER", "DRAGON", "EGG", "FROZEN", "GHOST", "HOLLYWOOD",
    "ICE", "JAPANESE", "KILLER", "LOST", "MIDNIGHT", "NORTHERN", "ORANGE", "PILOT",
    "QUEEN", "RIVER", "SILENT", "TURN", "UPTOWN", "VERTIGO", "WILD", "YOUNG",
)  # fmt: skip
NOUNS = (
    "ALAMO", "BANGER", "CLUE", "DINOSAUR", "EFFECT", "FICTION", "GARDEN", "HARRY", "IDOLS",
    "JUNGLE", "KRAMER", "LADY", "MAGIC", "NEIGHBORS", "OUTLAW", "PRINCESS", "QUEST",
    "ROSES", "STORM", "TRAMP", "UNFAITHFUL", "VOLUME", "WARS", "ZORRO",
)  # fmt: skip
PLOTS = (
    "A {} Drama of a {} And a {} who must {} a {} in {}",
    "An Epic Tale of a {1} And a {2} who must {3} a {4} in {5}",
    "A {} Display of a {} And a {}\nwho must {} a {} in {}",
)
MOODS = ("Touching", "Fateful", "Thrilling", "Unbelieveable", "Boring", "Fanciful")
ROLES = (
    "Feminist", "Mad Scientist", "Robot", "Woman", "Crocodile", "Database Administrator",
    "Sumo Wrestler", "Forensic Psychologist", "Moose", "Monkey", "Teacher", "Butler",
)  # fmt: skip
DEEDS = ("Battle", "Overcome", "Conquer", "Sink", "Chase", "Pursue", "Redeem", "Meet")
PLACES = (
    "The Canadian Rockies", "Ancient China", "A Jet Boat", "The Gulf of Mexico", "Berlin",
    "A MySQL Convention", "A Monastery", "A Shark Tank", "Nigeria", "The Outback",
)  # fmt: skip
SYLLABLES = (
    "ba", "che", "dor", "el", "fin", "gra", "hu", "is", "jo", "kur", "la", "mi", "nen",
    "or", "pla", "qui", "ros", "sta", "tu", "ul", "vor", "wes", "yar", "zen", "ö", "é",
)  # fmt: skip
STREETS = ("Boulevard", "Avenue", "Drive", "Lane", "Manor", "Parkway", "Place", "Way")
TOWNS = (
    "Nantou", "Sullana", "Hamilton", "Masqat", "Esfahan", "Kanchrapara", "Loja", "Sasebo",
    "Iwaki", "Athenai", "Myingyan", "Tangail", "Jinchang", "San Felipe", "Laredo", "Bhopal",
)  # fmt: skip
DISTRICTS = (
    "Alberta", "QLD", "Nagasaki", "California", "Attika", "Mandalay", "Nantou", "Texas",
    "Central Serbia", "Hamilton", "Masqat", "Piura", "Île-de-France", "Łódzkie", "",
)  # fmt: skip
