"""What artists are called and works are made of."""

from __future__ import annotations

from typing import NamedTuple


class People(NamedTuple):
    """How people of some nationalities are called.

    Attributes:
        weight: How many of them the museum has, against the others.
        nationalities: As its data have them.
        women: First names.
        men: First names.
        families: Last names; none where a name is one word.
    """

    weight: float
    nationalities: tuple[str, ...]
    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]


PEOPLE = (
    People(
        38,
        ("American",) * 8 + ("British", "Canadian", "Australian", "Irish"),
        ("Agnes", "Alma", "Dorothea", "Eleanor", "Grace", "June", "Lee", "Ruth"),
        ("Arthur", "Charles", "Edward", "Frank", "George", "Jasper", "Walker", "Wm."),
        (
            "Abbott", "Baker", "Crane", "Davies", "Ellsworth", "Finch", "Hartley",
            "King", "Lowell", "Marsh", "O’Connor", "Prendergast", "Weston", "Young",
        ),
    ),
    People(
        16,
        ("French",) * 5 + ("Belgian", "Swiss", "French "),
        ("Camille", "Françoise", "Hélène", "Marie-Thérèse", "Sonia", "Zoé"),
        ("André", "Émile", "François", "Jean-Luc", "Léon", "Maurice", "Théo"),
        (
            "Beaumont", "Chéreau", "Delaunoy", "Duchêne", "Gérard", "Lefèvre",
            "L’Hermitte", "Moreau", "Rivière", "Saint-Aubin", "Vallès", "d’Étampes",
        ),
    ),
    People(
        13,
        ("German",) * 4 + ("Austrian", "Swiss", "Danish", "Swedish", "Norwegian"),
        ("Anni", "Gerda", "Hannah", "Käthe", "Liselotte", "Paula", "Åsa"),
        ("Björn", "Ernst", "Günther", "Jürgen", "Karl", "Otto", "Søren"),
        (
            "Bäumer", "Ehrlich", "Grünewald", "Höch", "Jørgensen", "Krause", "Lindström",
            "Müller", "Nordahl", "Schröder", "Voß", "Zimmermann",
        ),
    ),
    People(
        10,
        ("Italian", "Italian", "Spanish", "Spanish", "Portuguese"),
        ("Carmen", "Giulia", "Inês", "Lucía", "Remedios", "Rosa"),
        ("Andrés", "Giorgio", "Joaquín", "Luigi", "Marcello", "Tomás"),
        (
            "Bianchi", "Conceição", "D’Amico", "Fontanè", "Ibáñez", "Muñoz", "Nuñez Vela",
            "Ruiz", "Sant’Elia", "Torres",
        ),
    ),
    People(
        9,
        ("Mexican", "Brazilian", "Argentine", "Cuban", "Colombian", "Chilean"),
        ("Amelia", "Frida", "Lygia", "María", "Tarsila"),
        ("Cândido", "Diego", "Hélio", "José", "Rufino", "Wifredo"),
        (
            "Almeida", "Blanco", "Camargo", "Gutiérrez", "Hernández", "Lamônica", "Orozco",
            "Peña", "Quintão", "Zúñiga",
        ),
    ),
    People(
        7,
        ("Japanese", "Japanese", "Chinese", "Korean"),
        ("Atsuko", "Yayoi", "Mieko", "Min-ji", "Xiuying"),
        ("Daidō", "Hiroshi", "Kenzō", "Shōmei", "Wei", "Ji-hoon"),
        ("Andō", "Fujita", "Hayashi", "Kim", "Kōno", "Ōtake", "Tanaka", "Wang", "李"),
    ),
    People(
        6,
        ("Russian", "Ukrainian", "Polish", "Czech", "Hungarian", "Romanian"),
        ("Alexandra", "Katarzyna", "Lyubov", "Toyen", "Varvara", "Zuzana"),
        ("Aleksandr", "El", "František", "István", "László", "Wacław"),
        (
            "Bogdănescu", "Dvořák", "Kovács", "Łukasik", "Malinová", "Popov", "Rózsa",
            "Stepanov", "Wójcik",
        ),
    ),
    People(
        1,
        ("South African", "Nigerian", "Egyptian", "Israeli", "Indian", "Iranian"),
        ("Amrita", "Farideh", "Marlene", "Nasreen", "Njideka"),
        ("Ben", "El Anatsui", "Mahmoud", "Raghubir", "William"),
        ("Adéagbo", "Bhattacharya", "Enwonwu", "Kentridge Moyo", "Sa‘īd", "ben Ari"),
    ),
)  # fmt: skip
MOVED_TO = ("American", "French", "British", "German", "Mexican", "Japanese")

NO_NATIONALITY = (None, None, "", "NULL", "Nationality Unknown", "nationality unknown")
"""What stands where nobody knows it."""
NO_GENDER = (None, "", "NULL", "Unknown")
FIRMS = ("Studio", "Atelier", "Press", "Brothers", "& Sons", "Foundry", "Werkstätte")
TITLES = (
    "Untitled", "Composition", "Study for {}", "Portrait of {}", "Self-Portrait", "The {}",
    "{} at Night", "Nature morte: {}", "Ohne Titel ({})", "“{}”", "{}, No. {n}",
    "Plate {n} from {}", "{} | State {n}", "La {} d’été", "无题 {n}",
)  # fmt: skip
SUBJECTS = (
    "Bridge", "City", "Dancer", "Dream", "Field", "Forêt", "Garden", "Harbor", "Horse",
    "Mirror", "Night", "River", "Staircase", "Tänzerin", "Table", "Window", "Ángel",
)  # fmt: skip
CREDITS = (
    "Gift of the artist", "Purchase", "Given anonymously", "Gift of Mrs. {}", "{} Fund",
    "{} Bequest", "The Associates Fund", "Gift of {} in honor of the museum’s staff", "",
    "Acquired through the generosity of {}",
)  # fmt: skip


class Craft(NamedTuple):
    """Works of one classification.

    Attributes:
        weight: How many there are, against the others.
        classification: As the data have it.
        departments: Where they are kept.
        media: What they are made of.
        sizes: Which of their sizes are known: h, w, d, D (diameter), c (circumference),
            l (length), k (kilograms), s (seconds).
    """

    weight: float
    classification: str | None
    departments: tuple[str, ...]
    media: tuple[str | None, ...]
    sizes: str


_PRINTS = "Drawings & Prints"
CRAFTS = (
    Craft(
        28,
        "Photograph",
        ("Photography",),
        ("Gelatin silver print", "Albumen silver print", "Chromogenic print", None),
        "hw",
    ),
    Craft(
        24,
        "Print",
        (_PRINTS, _PRINTS, "Drawings  & Prints"),
        ("Etching", "Lithograph", "Woodcut", "Screenprint", "Linoleum cut; one of 50", ""),
        "hw",
    ),
    Craft(12, "Illustrated Book", (_PRINTS,), ("Letterpress", "Lithographs", ""), "hw"),
    Craft(
        9,
        "Drawing",
        (_PRINTS,),
        ("Pencil on paper", "Ink and gouache on paper", "Crayon, 12″ × 9″", "NULL"),
        "hw",
    ),
    Craft(
        7,
        "Design",
        ("Architecture & Design",),
        ("Bent plywood", "Glass", "Chromed steel", "Plastic (ABS)", "Unknown"),
        "hwdDk",
    ),
    Craft(
        5,
        "Painting",
        ("Painting & Sculpture",),
        ("Oil on canvas", "Tempera on wood", "Acrylic on canvas", "Öl auf Leinwand"),
        "hw",
    ),
    Craft(
        4,
        "Sculpture",
        ("Painting & Sculpture",),
        ("Bronze", "Wood", "Marble and steel", "Painted aluminum"),
        "hwdkc",
    ),
    Craft(3, "Film", ("Film",), ("35mm film (black and white, silent)",), "s"),
    Craft(2, "Film (object)", ("Film",), ("Nitrate negative",), "l"),
    Craft(2, "Video", ("Media and Performance",), ("Video (color, sound)",), "s"),
    Craft(1, "Photograph/Print", ("Photography",), ("Photogravure",), "hw"),
    Craft(1, "(not assigned)", ("Architecture & Design", _PRINTS), (None, ""), ""),
    Craft(1, "", ("Fluxus Collection",), ("Mixed media",), "hwd"),
    Craft(1, None, ("",), (None,), ""),
)
