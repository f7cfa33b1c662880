"""Rules for the names of features, given by models or by people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from twothirds.discovery import same_name

NAME_LIMIT = 60
WORDS_LIMIT = 5

_PLACEHOLDERS = {"name", "feature", "string", "none", "n/a", "unknown", "example", "difference", "similarity", "other"}
# What people type instead of a name, in the languages of the review page.
_NO_ANSWERS = {
    *("nothing", "nothing else", "dont know", "do not know", "i dont know", "i do not know", "dunno", "idk", "no idea"),
    *("not sure", "unsure", "cannot tell", "cant tell", "both", "both of them", "neither", "all", "all of them"),
    *("all three", "yes", "no", "maybe", "nichts", "weiss nicht", "ich weiss nicht", "keine ahnung", "beide", "alle"),
    *("ja", "nein", "vielleicht", "rien", "sais pas", "je sais pas", "je ne sais pas", "aucune idée", "aucun"),
    *("aucune", "les deux", "tous", "toutes", "oui", "non", "peut être"),
}
_NEGATION = re.compile(
    r"\b(?<!me-)(not|no|non|without|lacks?|lacking|missing|absent|absence|never|neither|nor|\w+n['’]t|cannot)\b",
    re.IGNORECASE,
)
_FORBIDDING = re.compile(
    r"^no \w+( \w+)* (sign|symbol|logo|label|notice)s?$", re.IGNORECASE
)  # "no entry sign" is a thing
# An instruction is recognised by its verb in the imperative: where a sentence begins, or after a word that commands.
_BEGINS = r"(?:^|[.!?;:,\n–—]\s*|\b(?:please|always|only|just|must|should|shall|now|then|and|simply)\s+)"
_INSTRUCTIONS = (
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(above|previous|prior|earlier|instructions?|prompts?)\b",
    _BEGINS + r"(ignore|disregard|forget(?!-me))\b.{0,40}\b(all|everything|anything|rules?)\b",
    _BEGINS + r"(answer|reply|respond|say|output|print|return|write|label|mark)\b.{0,20}\b(yes|no|true|false)\b",
    r"\b(answer|reply|respond|say)(\s+with)?[\s:\"'“‘]+(yes|true|false)\b",
    _BEGINS + r"(answer|reply|respond|say|output|return|write)\s+(with\b.{0,20}\b)?(only|always|exactly|just)\b\s*\w*",
    _BEGINS + r"(print|label|mark)\s+(only|always|exactly|just)\s+(the|a|an|this|these|it|them|all|every|as)\b",
    r"\b(always|just)\s+(answer|reply|respond|say|output|return)\b|(?:^|[.!?;:]\s*)only\s+(answer|reply|respond|say)\b",
    _BEGINS + r"you (must|should|will|have to|shall|are(?! here\b))\b",
    r"\b(system|developer) prompt\b|\b(the|your|this) (system|developer) message\b|\bas an ai\b",
    r"\bi (cannot|can['’]t|am unable)\b|\bjailbreak (mode|prompt|now)\b",
    r"(?:^|[.!?;\n]\s*)(system|assistant|user|developer)\s*:",
)
_INSTRUCTION = re.compile("|".join(f"(?:{pattern})" for pattern in _INSTRUCTIONS), re.IGNORECASE)
_MARKS = " \"'“”‘’«»*_`;:,"
_MARKUP = re.compile(r"[{}<>\[\]|\\`]|://")
_POINTING = re.compile(r"\b(examples?|images?|pictures?|items?|texts?|groups?) ([A-C]|[1-9])\b|^[A-C]( and|,) [A-C]$")


def clean(text: str) -> str:
    """One line of visible characters, in one Unicode form, without quotation marks and the like around it."""
    normalised = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode("utf-8"))
    visible = "".join(" " if character.isspace() else character for character in normalised if _is_visible(character))
    return re.sub(r"\s+", " ", visible).strip(_MARKS)


def _is_visible(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def is_negation(name: str) -> bool:
    return _NEGATION.search(name) is not None and not _FORBIDDING.match(name)


def sounds_like_an_instruction(text: str) -> bool:
    return _INSTRUCTION.search(text) is not None or "://" in text


FAULTS = {
    "empty": "the name is empty",
    "no letters": "the name has no letters",
    "no answer": "the name names nothing",
    "long": f"the name must have one to {WORDS_LIMIT} words and at most {NAME_LIMIT} characters",
    "instruction": "the name is an instruction or markup, not a feature",
    "pointing": "the name points at examples instead of naming what can be seen or read in them",
    "negation": "the name is a negation: name something that is there",
    "known": "the name is that of a known feature",
    "unwanted": "the name is that of a feature that is not wanted",
}


def name_problem(name: str, known: Iterable[str] = (), exclude: Iterable[str] = ()) -> str:
    """What is wrong with a name made by `clean`, in words that can be put back to a model; empty when nothing is."""
    fault = name_fault(name, known, exclude)
    return FAULTS[fault] if fault else ""


def name_fault(name: str, known: Iterable[str] = (), exclude: Iterable[str] = ()) -> str:
    """The same as a key of FAULTS, for whoever has words of their own."""
    if not name or name.casefold().rstrip(".") in _PLACEHOLDERS:
        return "empty"
    if not any(character.isalpha() for character in name):
        return "no letters"
    if _spoken(name) in _NO_ANSWERS:
        return "no answer"
    if len(name) > NAME_LIMIT or len(name.split()) > WORDS_LIMIT:
        return "long"
    if sounds_like_an_instruction(name) or _MARKUP.search(name):
        return "instruction"
    if _POINTING.search(name):
        return "pointing"
    if is_negation(name):
        return "negation"
    if any(same_name(name, other) for other in known):
        return "known"
    return "unwanted" if any(same_name(name, other) for other in exclude) else ""


def _spoken(name: str) -> str:
    """In small letters, without apostrophes and marks."""
    words = re.sub(r"['’]", "", name.casefold())
    return " ".join(re.sub(r"[^\w]+", " ", words).split())
