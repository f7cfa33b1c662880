"""Audio is out of scope: it is recognised for the sake of the message, and never read."""

from __future__ import annotations

SUFFIXES = (".mp3", ".wav", ".flac", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".wma", ".aif", ".aiff", ".mid", ".midi")
AUDIO = "twothirds reads pictures, films and texts, not audio: give a transcript"
_STARTS = (b"ID3", b"fLaC", b"OggS", b"FORM", b"MThd", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xf1")


def is_audio(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def is_recording(content: bytes) -> bool:
    """Judged by the first bytes."""
    if content[:4] == b"RIFF":
        return content[8:12] == b"WAVE"
    return content.startswith(_STARTS) or (content[4:8] == b"ftyp" and content[8:11] in (b"M4A", b"M4B"))
