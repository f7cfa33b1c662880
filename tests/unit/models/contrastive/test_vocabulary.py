"""Words to name features with."""

from __future__ import annotations

from pathlib import Path

import pytest

from twothirds.models.contrastive.vocabulary import Phrase, Vocabulary, given, read
from twothirds.models.oracle import OracleUnavailable


def test_the_first_way_to_say_a_phrase_is_its_name_and_all_ways_differ() -> None:
    prompts = Phrase("glasses", "Any glasses.", ("spectacles",)).prompts
    assert prompts[:2] == ("glasses", "spectacles")
    assert "a picture of glasses" in prompts
    assert len(set(prompts)) == len(prompts)


def test_a_text_file_holds_one_phrase_a_line(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("red car\n\n  boat \nRed  Car\n", encoding="utf-8")
    assert [phrase.name for phrase in read(tmp_path / "words.txt").phrases] == ["red car", "boat"]


def test_a_json_file_holds_strings_or_objects(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text(
        '["boat", {"name": "car", "definition": "Four wheels.", "paraphrases": ["auto"]}]', encoding="utf-8"
    )
    assert read(path).phrases == (Phrase("boat"), Phrase("car", "Four wheels.", ("auto",)))


@pytest.mark.parametrize("content", ["{", '{"name": 1', "3", '[{"definition": "x"}]', "[]", "[3]"])
def test_a_bad_json_file_is_one_line_with_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "words.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(OracleUnavailable, match="vocabulary") as raised:
        read(path)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(OracleUnavailable, match=r"nowhere\.txt"):
        read(Path("nowhere.txt"))


def test_no_words_at_all_are_refused() -> None:
    with pytest.raises(OracleUnavailable, match="at least one phrase"):
        given(["", "  "])


def test_the_digest_tells_vocabularies_apart() -> None:
    first, again = (Vocabulary((Phrase("boat"), Phrase("car"))) for _ in range(2))
    assert first.digest == again.digest
    assert first.digest != Vocabulary((Phrase("boat"), Phrase("car", "Four wheels."))).digest


def test_a_phrase_is_found_whatever_its_case() -> None:
    phrase = Phrase("V-neck", "A neckline.", ("a v-neck",))
    assert Vocabulary((phrase,)).phrase(" v-NECK ") is phrase
    assert Vocabulary((phrase,)).phrase("boat") == Phrase("boat")
