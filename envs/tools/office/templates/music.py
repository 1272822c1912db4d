"""Instructions about music."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .row_template import EASY, HARD, MEDIUM, Ask, Plan, Scene, call, find_row_id, template


def _like_song(a: Ask) -> Plan:
    yield call("music_like", song=a.song)


@template(
    EASY, _like_song, "Like song {song}.", "I like song {song}; note it.",
    "Give song {song} a heart.",
)  # fmt: skip
def like_song(s: Scene) -> Tables:
    """The song is liked."""
    song = s.row("songs", liked=False)
    s.say(song=song)
    goal = s.goal()
    goal["songs"][song]["liked"] = True
    return goal


def _add_song(a: Ask) -> Plan:
    yield call("music_add_song", playlist=a.playlist, song=a.song)


@template(
    EASY, _add_song, "Add song {song} to playlist {playlist}.",
    "Playlist {playlist} should have song {song}, too.",
    "Put song {song} on playlist {playlist}.", test=True,
)  # fmt: skip
def add_song(s: Scene) -> Tables:
    """The song is on the playlist."""
    song = s.row("songs")
    playlist = s.row("playlists")
    s.world["playlists"][playlist]["songs"] -= {song}
    s.say(song=song, playlist=playlist)
    goal = s.goal()
    goal["playlists"][playlist]["songs"] |= {song}
    return goal


def _rename_playlist(a: Ask) -> Plan:
    yield call("music_rename_playlist", playlist=a.playlist, name=a.title)


@template(
    EASY, _rename_playlist, "Rename playlist {playlist} to {title}.",
    "Playlist {playlist} shall be called {title}.",
    "Change the name of playlist {playlist} to {title}.",
)  # fmt: skip
def rename_playlist(s: Scene) -> Tables:
    """The playlist has the name."""
    playlist = s.row("playlists")
    title = s.unused(words.PLAYLISTS, "playlists", "name")
    s.say(playlist=playlist, title=title)
    goal = s.goal()
    goal["playlists"][playlist]["name"] = title
    return goal


def _start_playlist(a: Ask) -> Plan:
    yield call("music_create_playlist", name=a.name)
    rows = yield call("music_playlists")
    (playlist,) = [row["playlist"] for row in rows if row["name"] == a.name]
    song = yield from find_row_id("song", "music_find", title=a.title)
    yield call("music_add_song", playlist=playlist, song=song)


@template(
    MEDIUM, _start_playlist, "Make a playlist {name} with the song {title}.",
    "New playlist {name}; its one song is {title}.", "Begin a playlist called {name} with {title}.",
)  # fmt: skip
def start_playlist(s: Scene) -> Tables:
    """There is one more playlist, which holds the song alone."""
    song = s.row("songs")
    name = s.unused(words.PLAYLISTS, "playlists", "name")
    s.say(name=name, title=s.world["songs"][song]["title"])
    goal = s.goal()
    goal["playlists"][1000] = {"name": name, "songs": frozenset({song})}
    return goal


def _unlike_artist(a: Ask) -> Plan:
    rows = yield call("music_of_artist", artist=a.artist)
    for row in rows:
        if row["liked"]:
            yield call("music_unlike", song=row["song"])


@template(
    MEDIUM, _unlike_artist, "I do not like any song of {artist} any more.",
    "Unlike everything by {artist}.", "Take the hearts from all songs of {artist}.",
)  # fmt: skip
def unlike_artist(s: Scene) -> Tables:
    """No song of the artist is liked; others are as they were."""
    artist = s.dice.choice(words.ARTISTS)
    s.say(artist=artist)
    for song in s.pick("songs", 2):
        s.world["songs"][song].update(artist=artist, liked=True)
    goal = s.goal()
    for row in goal["songs"].values():
        if row["artist"] == artist:
            row["liked"] = False
    return goal


def _queue_song(a: Ask) -> Plan:
    song = yield from find_row_id("song", "music_find", title=a.title)
    yield call("music_queue_song", song=song)


@template(
    MEDIUM, _queue_song, "Play {title} after the songs in the queue.",
    "Put {title} at the end of the queue.", "Queue {title}.", test=True,
)  # fmt: skip
def queue_song(s: Scene) -> Tables:
    """The song is at the end of the queue."""
    song = s.row("songs")
    queue = s.world["queue"][1]
    queue["songs"] = tuple(number for number in queue["songs"] if number != song)
    s.say(title=s.world["songs"][song]["title"])
    goal = s.goal()
    goal["queue"][1]["songs"] = (*queue["songs"], song)
    return goal


def _playlist_of_genre(a: Ask) -> Plan:
    liked = yield call("music_liked")
    yield call("music_create_playlist", name=a.name)
    rows = yield call("music_playlists")
    (playlist,) = [row["playlist"] for row in rows if row["name"] == a.name]
    for row in liked:
        if row["genre"] == a.genre:
            yield call("music_add_song", playlist=playlist, song=row["song"])


@template(
    HARD, _playlist_of_genre, "Make a playlist {name} of all the {genre} songs that I like.",
    "Collect my liked {genre} songs in a new playlist called {name}.",
    "New playlist {name}: every {genre} song with a heart.",
)  # fmt: skip
def playlist_of_genre(s: Scene) -> Tables:
    """There is one more playlist, which holds the liked songs of the genre and no other."""
    genre = s.dice.choice(words.GENRES)
    name = s.unused(words.PLAYLISTS, "playlists", "name")
    s.say(genre=genre, name=name)
    *liked, disliked, other_genre = s.pick("songs", 4)
    for song in liked:
        s.world["songs"][song].update(genre=genre, liked=True)
    s.world["songs"][disliked].update(genre=genre, liked=False)
    s.world["songs"][other_genre].update(genre=s.another_word(words.GENRES, genre), liked=True)
    goal = s.goal()
    songs = frozenset(
        number for number, row in s.world["songs"].items() if row["genre"] == genre and row["liked"]
    )
    goal["playlists"][1000] = {"name": name, "songs": songs}
    return goal


def _shorten_playlist(a: Ask) -> Plan:
    rows = yield call("music_playlists")
    (playlist,) = [row["playlist"] for row in rows if row["name"] == a.name]
    (content,) = yield call("music_get_playlist", playlist=playlist)
    for song in sorted(content["songs"]):
        (row,) = yield call("music_get_song", song=song)
        if row["minutes"] > a.minutes:
            yield call("music_remove_song", playlist=playlist, song=song)


@template(
    HARD, _shorten_playlist,
    "Take all songs longer than {minutes} minutes out of the playlist {name}.",
    "The playlist {name} should have no song of more than {minutes} minutes.",
    "Remove from {name} whatever lasts over {minutes} minutes.", test=True,
)  # fmt: skip
def shorten_playlist(s: Scene) -> Tables:
    """The songs of the playlist that last longer are not on it any more; the others are."""
    playlist = s.row("playlists")
    minutes = s.dice.between(3, 6)
    songs = s.pick("songs", 4)
    for song, length in zip(songs, (minutes + 1, minutes, minutes + 2, minutes - 1), strict=True):
        s.world["songs"][song]["minutes"] = length
    s.world["playlists"][playlist]["songs"] = frozenset(songs)
    s.say(name=s.world["playlists"][playlist]["name"], minutes=minutes)
    goal = s.goal()
    goal["playlists"][playlist]["songs"] = frozenset((songs[1], songs[3]))
    return goal


def _favourite_artist(a: Ask) -> Plan:
    liked = yield call("music_liked")
    artists = [row["artist"] for row in liked]
    return max(artists, key=artists.count)


@template(
    HARD, _favourite_artist, "Of which artist do I like the most songs?",
    "Who has the most of my hearts in music?",
    "Name the artist with the largest number of songs that I like.",
)  # fmt: skip
def favourite_artist(s: Scene) -> tuple[Tables, str]:
    """Nothing changes; the answer is the artist with the most liked songs."""
    artist, second = s.dice.sample(words.ARTISTS, 2)
    liked = s.pick("songs", 7)
    for row in s.world["songs"].values():
        row["liked"] = False
    for rank, song in enumerate(liked):
        s.world["songs"][song].update(liked=True, artist=artist if rank < 3 else second)
        if rank > 4:
            s.world["songs"][song]["artist"] = s.another_word(words.ARTISTS, artist, second)
    return s.goal(), artist


TEMPLATES = (
    like_song, add_song, rename_playlist, start_playlist, unlike_artist, queue_song,
    playlist_of_genre, shorten_playlist, favourite_artist,
)  # fmt: skip
