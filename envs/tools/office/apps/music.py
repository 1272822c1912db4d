"""The app ``music``: songs, playlists and a queue."""

from __future__ import annotations

from .. import words
from ..rows import World, edit_row
from .row_api import (
    Failed,
    Rows,
    add_row,
    find_row,
    getter,
    lister,
    marker,
    one_of,
    reads,
    remover,
    row_id,
    setter,
    writes,
)

SONG, PLAYLIST = row_id("songs"), row_id("playlists")
TITLE, NAME = one_of("title of a song", words.SONGS), one_of("name of a playlist", words.PLAYLISTS)
ARTIST, GENRE = one_of("artist", words.ARTISTS), one_of("genre", words.GENRES)
ENTRY = ("title", "artist", "genre", "minutes")


@writes(name=NAME)
def music_create_playlist(world: World, name: str) -> World:
    """Add an empty playlist. Fails if one has this name."""
    if any(row["name"] == name for row in world["playlists"].values()):
        raise Failed("already_so")
    return add_row(world, "playlists", name=name, songs=frozenset())


@writes(playlist=PLAYLIST, song=SONG)
def music_add_song(world: World, playlist: int, song: int) -> World:
    """Add a song to a playlist."""
    songs = find_row(world, "playlists", playlist)["songs"]
    find_row(world, "songs", song)
    if song in songs:
        raise Failed("already_so")
    return edit_row(world, "playlists", playlist, songs=songs | {song})


@writes(playlist=PLAYLIST, song=SONG)
def music_remove_song(world: World, playlist: int, song: int) -> World:
    """Take a song out of a playlist."""
    songs = find_row(world, "playlists", playlist)["songs"]
    if song not in songs:
        raise Failed("already_so")
    return edit_row(world, "playlists", playlist, songs=songs - {song})


@writes(song=SONG)
def music_queue_song(world: World, song: int) -> World:
    """Put a song at the end of the queue."""
    find_row(world, "songs", song)
    songs = world["queue"][1]["songs"]
    if song in songs:
        raise Failed("already_so")
    return edit_row(world, "queue", 1, songs=(*songs, song))


@writes()
def music_clear_queue(world: World) -> World:
    """Empty the queue."""
    if not world["queue"][1]["songs"]:
        raise Failed("already_so")
    return edit_row(world, "queue", 1, songs=())


@reads()
def music_queue(world: World) -> Rows:
    """Show the queue; songs are ids in their order."""
    return [world["queue"][1]]


ROW_APIS = (
    lister("music_songs", "List all songs.", "songs", ENTRY[:1]),
    lister("music_find", "Find songs by title.", "songs", ENTRY, title=TITLE),
    lister(
        "music_of_artist", "List the songs of an artist.", "songs", (*ENTRY, "liked"), artist=ARTIST
    ),
    lister("music_of_genre", "List the songs of a genre.", "songs", (*ENTRY, "liked"), genre=GENRE),
    lister(
        "music_liked",
        "List the songs that the user likes.",
        "songs",
        ENTRY,
        lambda row: row["liked"],
    ),
    getter("music_get_song", "Show a song.", "songs", (*ENTRY, "liked")),
    marker("music_like", "Like a song.", "songs", "liked", True),
    marker("music_unlike", "Like a song no more.", "songs", "liked", False),
    lister("music_playlists", "List the playlists.", "playlists", ("name",)),
    getter("music_get_playlist", "Show a playlist; songs are ids.", "playlists", ("name", "songs")),
    music_create_playlist,
    remover("music_delete_playlist", "Delete a playlist.", "playlists"),
    setter("music_rename_playlist", "Change the name of a playlist.", "playlists", "name", NAME),
    music_add_song,
    music_remove_song,
    music_queue_song,
    music_clear_queue,
    music_queue,
)
