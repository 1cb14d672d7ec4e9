"""The words that events and venues are called by."""

from __future__ import annotations

TOWNS = (
    "Ashford", "Bellport", "Brookhaven", "Cedar Falls", "Clearwater", "Eastfield",
    "Fairmont", "Glenwood", "Granite Bay", "Harborview", "Kingsport", "Lakeside",
    "Maplewood", "Millbrook", "Northgate", "Oakdale", "Pine Ridge", "Redstone",
    "Riverton", "Silver Lake", "Stonebridge", "Summit", "Westbrook", "Windham",
)  # fmt: skip
TEAMS = (
    ("Badgers", "Herons", "Millers", "Pilots", "Rovers", "Sluggers"),
    ("Blizzard", "Frost", "Icebreakers", "Moose", "Polar Bears", "Sabres"),
    ("Bison", "Chargers", "Ironmen", "Mustangs", "Thunder", "Wolves"),
    ("Comets", "Flyers", "Hoops", "Meteors", "Skyhawks", "Towers"),
    ("Athletic", "City", "Dynamo", "Rangers", "United", "Wanderers"),
)  # fmt: skip
"""By the category of a sport."""
TITLES = (
    (
        "Harbor Lights", "The Clockmaker's Daughter", "Midnight on Main Street",
        "Paper Moons", "The Last Ferry", "Sugar and Steam", "Tap Shoes", "Up the Hill",
        "Letters from Lisbon", "A Season of Rain", "The Button Thief", "Carousel Road",
    ),
    (
        "Hamlet", "Macbeth", "Othello", "King Lear", "Twelfth Night", "The Seagull",
        "Uncle Vanya", "Three Sisters", "A Doll's House", "Hedda Gabler", "Tartuffe",
        "The Misanthrope", "Candida", "The Rivals", "Volpone", "Faust", "Miss Julie",
    ),
    (
        "Aida", "Carmen", "Tosca", "Rigoletto", "La Traviata", "La Boheme", "Fidelio",
        "The Magic Flute", "Don Giovanni", "Norma", "Nabucco", "Falstaff", "Eugene Onegin",
        "Il Trovatore", "Così fan tutte", "Götterdämmerung", "Der Rosenkavalier",
    ),
)  # fmt: skip
"""By the category of a show."""
BANDS = (
    ("{last} and the Satellites", "The {last}s", "{first} {last}", "{first}"),
    ("{first} {last} Trio", "{last} Quartet", "{first} {last} Big Band", "{first} {last}"),
    ("{last} String Quartet", "{first} {last} Chamber Orchestra", "{last} Choir",
     "{first} {last}"),
)  # fmt: skip
"""By the category of a concert."""
HOUSES = {
    "Sports": ("Stadium", "Field", "Arena", "Park", "Center", "Coliseum"),
    "Concerts": ("Hall", "Amphitheater", "Pavilion", "Music Center", "Ballroom", "Garden"),
    "Shows": ("Theatre", "Playhouse", "Opera House", "Stage"),
}  # fmt: skip
"""What a venue is, by the group of what is given there."""
HOBBIES = ("Dance", "Comedy", "Circus", "Magic", "Skating", "Poetry", "Film", "Rodeo")
"""Categories that come later."""
