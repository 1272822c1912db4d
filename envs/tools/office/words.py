"""Words of the office: everything that a row, an argument or an answer may hold.

The compiled office has a few of them (``columns.py``), the large one all.
"""

from __future__ import annotations

FIRST_NAMES = (
    "Ana", "Ben", "Chloe", "David", "Emma", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Kira",
    "Leo", "Maya", "Noah", "Olga", "Paul", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Will", "Yara",
    "Zoe",
)  # fmt: skip
LAST_NAMES = (
    "Adler", "Brandt", "Costa", "Duval", "Evans", "Fiore", "Gomez", "Hansen", "Ivanov", "Jansen",
    "Keller", "Lopez", "Moreau", "Novak", "Olsen", "Peters",
)  # fmt: skip
CITIES = ("Berlin", "Lisbon", "Lyon", "Oslo", "Prague", "Vienna")
RELATIONS = ("accountant", "colleague", "cousin", "friend", "landlord", "neighbour")
PHONES = tuple(f"555-01{number:02d}" for number in range(100))

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")
HOURS = ("09:00", "10:00", "11:00", "12:00", "13:00", "14:00")
TIMES = tuple(f"{day} {hour}" for day in DAYS for hour in HOURS)
EVENTS = (
    "breakfast", "budget", "demo", "dentist", "dinner", "interview", "kickoff", "lunch",
    "rehearsal", "review", "standup", "training", "workshop", "yoga",
)  # fmt: skip
PLACES = ("cafe", "lab", "library", "office", "park", "studio")

DIRECTIONS = ("incoming", "outgoing")
STATUSES = ("open", "paid", "declined", "withdrawn")

MAIL_FOLDERS = ("inbox", "archive", "bills", "family", "travel")
SUBJECTS = (
    "agenda", "birthday", "contract", "delivery", "feedback", "flight", "garden", "invoice", "keys",
    "lease", "minutes", "offer", "parking", "photos", "recipe", "survey", "ticket", "visit",
)  # fmt: skip
PHRASES = (
    "call me back", "congratulations", "count me in", "good luck", "happy birthday", "i am late",
    "i am on my way", "i cannot come", "let us meet", "no problem", "please confirm", "please wait",
    "see you soon", "thank you", "what time", "well done",
)  # fmt: skip

TASKS = (
    "book train", "buy paint", "call bank", "clean attic", "feed cat", "file taxes", "fix bike",
    "hang lamp", "mow lawn", "order wood", "pack bags", "plan menu", "print forms", "renew card",
    "sort mail", "water plants", *SUBJECTS,
)  # fmt: skip
PROJECTS = ("club", "garden", "house", "work")
PRIORITIES = ("low", "normal", "high")

NOTES = (
    "allergies", "books", "budget", "films", "gifts", "ideas", "measures", "menu", "numbers",
    "passwords", "plans", "quotes", "routes", "wines",
)  # fmt: skip
NOTE_FOLDERS = ("home", "office", "private")

SONGS = (
    "Amber", "Bells", "Cinder", "Drift", "Echo", "Fable", "Glass", "Harbour", "Island", "Jade",
    "Kites", "Lanterns", "Mirage", "North", "Orbit", "Pebbles", "Quarry", "Rivers", "Sparks",
    "Tides", "Umbra", "Velvet", "Willow", "Zenith",
)  # fmt: skip
ARTISTS = ("Blue Foxes", "Cara Lund", "Night Bus", "Paper Moon", "The Tails", "Trio Nova")
GENRES = ("folk", "jazz", "pop", "rock")
PLAYLISTS = (
    "morning",
    "evening",
    "road",
    "party",
    "focus",
    "sleep",
    "running",
    "cooking",
    "rain",
    "summer",
)

PRODUCTS = (
    "chair", "clock", "desk", "drill", "fan", "globe", "hammer", "jug", "kettle", "ladder", "lamp",
    "mixer", "mug", "oven", "pan", "rug", "saw", "shelf", "toaster", "vase",
)  # fmt: skip
CATEGORIES = ("decor", "furniture", "kitchen", "tools")
ORDER_STATUSES = ("processing", "shipped", "delivered", "cancelled", "returned")

REASONS = (
    "insufficient_funds",
    "no_such_contact",
    "ambiguous_contact",
    "no_such_event",
    "no_free_time",
    "out_of_stock",
)
MAX_NUMBER = 999
"""The largest whole number of an argument."""
MAX_ROW_ID = 99
"""The largest id of a row."""
