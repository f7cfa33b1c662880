"""What can go wrong with a local model: one line with the remedy, and the other questions are answered all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.support.asking import ask
from tests.support.tiny_models import quiet_transformers, save_tiny_instruct, save_tiny_llava
from twothirds.discovery.questions import Kind
from twothirds.models.local.oracle import LocalVlmConfig, LocalVlmOracle
from twothirds.models.oracle import Answer, Compare, Feature, Label, OracleError, OracleUnavailable, Question, Verdict
from twothirds.sources.dataset import Example, picture_at

HAT = Feature("hat", "There is a hat.")


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its context holds one picture and a short question, not much more."""
    return save_tiny_llava(tmp_path_factory.mktemp("llava"), context=256)


@pytest.fixture(scope="module")
def instruct(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_instruct(tmp_path_factory.mktemp("instruct"))


@pytest.fixture
def picture(tmp_path: Path) -> Example:
    path = tmp_path / "red.png"
    Image.new("RGB", (32, 32), "red").save(path)
    return picture_at(path)


def answers_of(folder: Path, questions: list[Question], **options: object) -> dict[Question, Answer]:
    config = LocalVlmConfig(model=str(folder), **{"max_new_tokens": 8, **options})  # type: ignore[arg-type]
    answers = list(ask(LocalVlmOracle(config), questions))
    assert len(answers) == len(questions)
    return {answer.question: answer for answer in answers}


def message_of(model: str | Path, questions: list[Question] | None = None) -> str:
    with pytest.raises(OracleUnavailable) as raised:
        list(
            ask(
                LocalVlmOracle(LocalVlmConfig(model=str(model))), questions or [Label(HAT, Example("a", "a", "A hat."))]
            )
        )
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_hub_id_without_network_says_how_to_do_without() -> None:
    message = message_of("somebody/some-model")
    assert "'somebody/some-model' is no folder, not in the hub's cache, and the hub cannot be reached" in message
    assert "hf download somebody/some-model" in message


def test_a_folder_that_is_not_there_or_holds_no_model_is_named(tmp_path: Path) -> None:
    assert f"there is no folder '{tmp_path / 'missing'}'" in message_of(tmp_path / "missing")
    assert "there is no folder './missing'" in message_of("./missing")
    assert "no config.json" in message_of(tmp_path)
    assert "neither a folder nor a hub id" in message_of("what is this")


def test_damaged_files_are_one_line(tmp_path: Path) -> None:
    folder = save_tiny_instruct(tmp_path / "cut")
    (folder / "model.safetensors").write_bytes(b"not tensors")
    assert "model 'cut' cannot be loaded" in message_of(folder)
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert "model 'cut' cannot be loaded" in message_of(folder)


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [("siglip", "use it as contrastive:other"), ("vit", "instruct language model"), ("t5", "image-text-to-text model")],
)
def test_a_model_of_another_kind_says_which_kind_is_wanted(tmp_path: Path, kind: str, remedy: str) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
    message = message_of(folder)
    assert f"is a {kind}" in message
    assert remedy in message


def test_a_model_that_only_reads_refuses_pictures(instruct: Path, picture: Example) -> None:
    message = message_of(instruct, [Label(HAT, picture)])
    assert "only reads text and example 'red' is an image: choose an image-text-to-text model" in message


def test_a_tokenizer_without_yes_and_no_is_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    folder = save_tiny_instruct(tmp_path / "dumb")
    words = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    tokenizer = quiet_transformers().PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<unk>", eos_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    assert "cannot tell yes from no" in message_of(folder)


def test_a_question_longer_than_the_context_is_refused_and_the_others_are_answered(llava: Path) -> None:
    short, long = Example("short", "s", text="A hat."), Example("long", "l", text="very " * 300 + "long")
    for questions in ([Label(HAT, short), Label(HAT, long)], [Label(HAT, long, voter) for voter in range(3)]):
        found = answers_of(llava, list(questions), least_mass=0.0)
        for question in questions:
            answer = found[question]
            if question.example is long:
                assert answer.verdict is Verdict.REFUSED
                assert "exceed the model's 256: shorten the texts" in answer.note
            else:
                assert answer.verdict in (Verdict.YES, Verdict.NO)


def test_a_comparison_longer_than_the_context_is_refused(llava: Path, picture: Example) -> None:
    question = Compare(Kind.TWO_OF_THREE, (picture, picture, picture))
    answer = answers_of(llava, [question])[question]
    assert answer.verdict is Verdict.REFUSED
    assert "exceed the model's 256" in answer.note


def test_a_repair_that_would_be_too_long_leaves_the_first_reply(tmp_path: Path) -> None:
    folder = save_tiny_instruct(tmp_path, context=340)
    question = Compare(Kind.PAIR, (Example("a", "a", text="A hat."), Example("b", "b", text="No hat.")))
    answer = answers_of(folder, [question])[question]
    assert answer.verdict is Verdict.UNREADABLE
    assert answer.usage.requests == 1


def test_a_damaged_picture_is_refused_and_the_others_are_answered(
    llava: Path, picture: Example, tmp_path: Path
) -> None:
    path = tmp_path / "torn.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n torn")
    torn = picture_at(path)
    found = answers_of(llava, [Label(HAT, example) for example in (torn, picture)])
    assert found[Label(HAT, picture)].verdict in (Verdict.YES, Verdict.NO)
    assert found[Label(HAT, torn)].verdict is Verdict.REFUSED
    assert "'torn'" in found[Label(HAT, torn)].note


def test_a_picture_that_is_gone_ends_the_run_and_is_not_recorded(llava: Path, tmp_path: Path) -> None:
    gone = Example("gone", "g", image=str(tmp_path / "gone.png"))
    assert "'gone' cannot be read any more (missing file): restore it" in message_of(llava, [Label(HAT, gone)])


def test_a_batch_too_large_for_the_memory_is_halved(instruct: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from twothirds.models.local.yes_no import YesNoReader

    read, sizes = YesNoReader.read, []

    def read_a_few(self: YesNoReader, prompts: list[object], about: list[object]) -> object:
        sizes.append(len(prompts))
        if len(prompts) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return read(self, prompts, about)  # type: ignore[arg-type]

    monkeypatch.setattr(YesNoReader, "read", read_a_few)
    limit = 2
    questions: list[Question] = [Label(HAT, Example(str(n), str(n), text=f"Hat {n}.")) for n in range(5)]
    assert set(answers_of(instruct, questions)) == set(questions)
    assert max(sizes) == 5
    limit = 0
    assert "runs out of memory on one question: choose a smaller model" in message_of(instruct)


@pytest.mark.parametrize(
    ("option", "value"),
    [("batch", 0), ("least_mass", 1.5), ("yes_from", 0.0), ("price_per_hour", -1.0), ("max_new_tokens", 0)],
)
def test_a_setting_that_makes_no_sense_is_named(option: str, value: float) -> None:
    with pytest.raises(OracleError, match=f"vlm: {option}={value} .*: give"):
        LocalVlmConfig(model="any", **{option: value})  # type: ignore[arg-type]
