"""Any CLIP or SigLIP model as an oracle: it labels by similarity, and names features out of a vocabulary.

Every image and every phrase is embedded once per model; a question is then a few dot products and costs nothing. Voters
differ in the wording of a phrase: its name, its paraphrases, then prompt templates."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Kind, differs_clearly, possible_counts
from twothirds.models.contrastive.domain import Domain
from twothirds.models.contrastive.embeddings import Embedder, Embeddings
from twothirds.models.contrastive.onnx_tower import NameVectors, TowerEmbedder, find_tower, is_tower, vectors_name
from twothirds.models.contrastive.vocabulary import FILE_NAME, Phrase, Vocabulary, fold, given, read
from twothirds.models.local import ModelFiles, find_model
from twothirds.models.oracle import (
    Answer,
    Chances,
    Choose,
    Compare,
    ComputedVotes,
    Family,
    Feature,
    Label,
    Meter,
    NamedFeature,
    OracleIdentity,
    OracleUnavailable,
    Question,
    Reply,
    Request,
    Same,
    Traits,
    Unlike,
    Usage,
    Verdict,
    Why,
    in_requests,
    replied,
)
from twothirds.models.prompting import chosen_answer, named_by_words
from twothirds.sources import Example

Patterns = NDArray[np.bool_]  # one row per way to answer: which examples have the feature, then those of `without`


@dataclass(frozen=True, slots=True)
class Fit:
    phrase: int
    probability: float  # that the phrase holds for exactly the examples in `shown`
    shown: tuple[int, ...]


def patterns_of(question: Compare) -> Patterns:
    shown, without = len(question.examples), len(question.without)
    if question.kind is Kind.LEFT_RIGHT:
        return np.array([[True] * shown + [False] * without])
    counts = possible_counts(question.kind, shown)
    sets = (chosen for count in counts for chosen in combinations(range(shown), count))
    return np.array([[place in chosen for place in range(shown)] for chosen in sets])


def best_fit(logits: NDArray[np.float64], patterns: Patterns, allowed: NDArray[np.bool_]) -> Fit | None:
    """`logits` has a row per example and a column per phrase. None where no phrase is allowed."""
    if not allowed.any():
        return None
    log_yes, log_no = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
    scores = patterns @ log_yes + ~patterns @ log_no
    scores[:, ~allowed] = -np.inf
    row, phrase = np.unravel_index(int(np.argmax(scores)), scores.shape)
    shown = tuple(int(place) for place in np.flatnonzero(patterns[row]))
    return Fit(int(phrase), float(np.exp(scores[row, phrase])), shown)


def best_between(logits: NDArray[np.float64], first: int, allowed: NDArray[np.bool_]) -> Fit | None:
    """The phrase whose expected share differs most between the `first` examples and the others; None if none clearly
    does. Its probability is that it is true of an example where it is said to be."""
    likely = np.exp(-np.logaddexp(0.0, -logits))
    has = likely > 0.5
    difference = np.abs(likely[:first].mean(axis=0) - likely[first:].mean(axis=0))
    difference[~(allowed & differs_clearly(has[:first], has[first:]))] = -np.inf
    phrase = int(difference.argmax()) if difference.size else 0
    if not difference.size or not np.isfinite(difference[phrase]):
        return None
    shown = np.flatnonzero(has[:, phrase])
    return Fit(phrase, float(likely[shown, phrase].mean()), tuple(shown.tolist()))


def best_shared(logits: NDArray[np.float64], counts: range, allowed: NDArray[np.bool_]) -> Fit | None:
    """The phrase that most probably holds for one of so many examples, whichever they are; None if none seems to."""
    likely = np.exp(-np.logaddexp(0.0, -logits))
    chances = np.eye(1, len(likely) + 1).T @ np.ones((1, likely.shape[1]))  # of each count, after no example
    for row in likely:
        chances = chances * (1 - row) + np.vstack([np.zeros_like(row), chances[:-1] * row])
    has = likely > 0.5
    fits = allowed & np.isin(has.sum(axis=0), counts)
    probability = np.where(fits, chances[counts.start : counts.stop].sum(axis=0), -np.inf)
    if not fits.any():
        return None
    phrase = int(probability.argmax())
    return Fit(phrase, float(probability[phrase]), tuple(np.flatnonzero(has[:, phrase]).tolist()))


LogOdds = NDArray[np.float64]  # a row per example, a column per prompt

NEGATED, NEUTRAL = "a picture without {}", "a picture"
ENOUGH_TO_CENTRE = 8  # phrases whose mean says what all phrases of the model have in common


def log_odds(embeddings: Embeddings, examples: Sequence[Example], prompts: Sequence[str]) -> LogOdds:
    """SigLIP gives them itself. CLIP only compares: the prompt against the mean of a negated and a neutral one, or
    against all other names where a table of names is all that it knows."""
    images = embeddings.images(examples).astype(np.float64)
    model = embeddings.embedder
    logits: LogOdds = model.scale * images @ embeddings.texts(prompts).T + model.bias
    if model.sigmoid:
        return logits
    if model.rivals:
        return against_rivals(logits, model.scale * images @ embeddings.texts(model.rivals).T)
    negated: LogOdds = model.scale * images @ embeddings.texts([NEGATED.format(prompt) for prompt in prompts]).T
    neutral: LogOdds = model.scale * images @ embeddings.texts([NEUTRAL]).T
    refuted: LogOdds = np.logaddexp(negated, neutral) - np.log(2.0)
    return logits - refuted


def against_rivals(logits: LogOdds, of_rivals: LogOdds) -> LogOdds:
    """Of a name against the sum of the others, itself being one of n names. A picture may have several names and need
    have none: the odds before looking are 1 to √n, halfway between one name in n (1 to n) and every name (1 to 1)."""
    share = np.minimum(logits - np.logaddexp.reduce(of_rivals, axis=1, keepdims=True), -1e-9)
    odds: LogOdds = share - np.log(-np.expm1(share)) + np.log(of_rivals.shape[1]) / 2
    return odds


def probability(log_odds: LogOdds) -> NDArray[np.float64]:
    return np.exp(-np.logaddexp(0.0, -log_odds))


def closeness(embeddings: Embeddings, names: Sequence[str], others: Sequence[str]) -> NDArray[np.float64]:
    """Cosines of phrases, a row per name. What all names share is taken out: CLIP finds any two phrases alike."""
    ours, theirs = (embeddings.texts(list(texts)).astype(np.float64) for texts in (names, others))
    if len(names) >= ENOUGH_TO_CENTRE:
        common = ours.mean(axis=0)
        ours, theirs = ours - common, theirs - common
    norms = np.linalg.norm(ours, axis=1)[:, None] * np.linalg.norm(theirs, axis=1)
    cosines: NDArray[np.float64] = ours @ theirs.T / np.maximum(norms, 1e-12)
    return cosines


SHIPPED = Path(__file__).resolve().parents[1] / "faces"
WEIGHT_FILES = ("*.safetensors", "*.bin", "config.json", "*token*", "vocab.*", "merges.txt", "*processor*.json")
THRESHOLD = 0.5  # least probability that a named feature holds for exactly the chosen examples
SYNONYM = 0.9  # cosine from which two phrases count as one
LEAST_LIKELY = 0.25  # of the value that is chosen
PROMPTS = "1"
WIDTH = 16  # requests
ONLY_LOOKS = "a contrastive model looks at pictures: it neither compares words nor gives reasons"
MOST_LOOKED_AT = 200  # pictures of which it is asked whether they are of the kind that the model knows


class ContrastiveOracle:
    """`model` is a folder or a hub id, by default the model that ships, or an image tower as an ONNX file, which needs
    `vectors`, a file with those of the vocabulary; `vocabulary` is a file, words, or None for the one beside the
    weights; `cache` a folder for the vectors of pictures, or None to keep them in memory only."""

    traits = Traits(profile="local", width=WIDTH, reads_text=False, deterministic=True, opens_pictures=True)

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        vocabulary: Path | Sequence[str] | None = None,
        vectors: Path | None = None,
        threshold: float = THRESHOLD,
        synonym: float = SYNONYM,
        cache: Path | None = None,
        revision: str | None = None,
    ) -> None:
        for name, value in (("threshold", threshold), ("synonym", synonym)):
            if not 0 < value <= 1:
                raise OracleUnavailable(f"contrastive: {name}={value} must be above 0 and at most 1")
        self._threshold = threshold
        self._synonym = synonym
        tower = is_tower(str(model))
        files = find_tower(str(model)) if tower else find_model(str(model or SHIPPED), revision)
        self._vocabulary = _vocabulary(files, vocabulary)
        names = _name_vectors(files, self._vocabulary, vectors)
        version = vectors_name(files) if tower else files.revision or _weights_digest(Path(files.location))
        load = partial(Embedder, files) if names is None else partial(TowerEmbedder, files, names)
        self._embeddings = Embeddings(load, version, cache)
        self._domain = Domain.read(Path(files.location), version)
        self._sayable: dict[str, tuple[str, ...]] = {}
        chosen = {"weights": version, "threshold": threshold, "synonym": synonym}
        chosen["vocabulary"] = self._vocabulary.digest if self._vocabulary else ""
        if names is not None:
            chosen["vectors"] = names.digest
        self.identity = OracleIdentity("contrastive", files.name, tuple(sorted(chosen.items())), PROMPTS)

    def vectors(self, examples: Sequence[Example]) -> NDArray[np.float32]:
        """Of pictures, a row each."""
        _pictures(examples)
        return self._embeddings.images(list(examples))

    def prepare(self, examples: Sequence[Example]) -> Unlike:
        """Of the first pictures, how many are not of the kind that the model was made for, where it says so."""
        _pictures(examples)
        vectors = self.vectors(examples[:MOST_LOOKED_AT])
        if self._domain is None or not examples:
            return Unlike()
        outside = self._domain.outside(vectors)
        return Unlike(int(outside.sum()), len(outside), self._domain.description, str(self.identity))

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions)

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        for request in requests:
            meter.leaving(request, request.bound)
            started = time.perf_counter()
            try:
                answers = self._answered(request.questions)
            except OracleUnavailable:
                yield Reply(request)  # it is free of charge
                raise
            seconds = (time.perf_counter() - started) / len(answers)
            yield replied(request, (replace(answer, seconds=seconds, usage=Usage(requests=1)) for answer in answers))

    def _answered(self, questions: Sequence[Question]) -> list[Answer]:
        """Of one kind."""
        about_words = [question for question in questions if isinstance(question, Same | Why)]
        if about_words:
            return [self._answer(question, Verdict.REFUSED, note=ONLY_LOOKS) for question in about_words]
        answers = self._label([question for question in questions if isinstance(question, Label)])
        answers += self._choose([question for question in questions if isinstance(question, Choose)])
        answers += [self._compare(question) for question in questions if isinstance(question, Compare)]
        return answers + [self._family(question) for question in questions if isinstance(question, Family)]

    def _label(self, questions: Sequence[Label]) -> list[Answer]:
        answers: list[Answer] = []
        understood: list[tuple[Label, str]] = []
        for question in questions:
            problem = self._embeddings.problem_with(question.feature.name)
            if problem is None:
                understood.append((question, self._prompt(question.feature.name, question.voter)))
            else:
                answers.append(self._answer(question, Verdict.REFUSED, note=problem))
        if not understood:
            return answers
        examples = _pictures(question.example for question, _ in understood)
        prompts = list(dict.fromkeys(prompt for _, prompt in understood))
        table = probability(log_odds(self._embeddings, list(examples.values()), prompts))
        rows = {digest: row for row, digest in enumerate(examples)}
        columns = {prompt: column for column, prompt in enumerate(prompts)}
        for question, prompt in understood:
            likely = float(table[rows[question.example.digest], columns[prompt]])
            verdict = Verdict.YES if likely > 0.5 else Verdict.NO
            answers.append(self._answer(question, verdict, probability=likely, raw=prompt))
        return answers

    def _choose(self, questions: Sequence[Choose]) -> list[Answer]:
        """The value that is most likely, unless none is likely at all."""
        asked = [Label(value, question.example, question.voter) for question in questions for value in question.values]
        labelled = {answer.question: answer for answer in self._label(asked)}
        answers = []
        for question in questions:
            likely = [labelled[Label(value, question.example, question.voter)].probability for value in question.values]
            best = max(range(len(likely)), key=lambda place: likely[place] or 0.0)
            places = [best] if (likely[best] or 0.0) >= LEAST_LIKELY else []
            raw = ", ".join("?" if chance is None else f"{chance:.4f}" for chance in likely)
            answers.append(chosen_answer(question, places, str(self.identity), raw=raw))
        return answers

    def _family(self, question: Family) -> Answer:
        """By the words of the names: the model tells which of two phrases is nearer, not what they are."""
        phrases = self._vocabulary.phrases if self._vocabulary else ()
        return named_by_words(
            question, str(self.identity), [Feature(phrase.name, phrase.definition) for phrase in phrases]
        )

    def compute(
        self,
        features: Sequence[Feature],
        examples: Sequence[Example],
        voter: int,
        wanted: NDArray[np.bool_],  # noqa: ARG002 (one product gives them all)
    ) -> ComputedVotes:
        problems = [self._embeddings.problem_with(feature.name) or "" for feature in features]
        chances = self._chances(features, problems, examples, voter)
        labels = np.select([chances > 0.5, chances <= 0.5], [np.int8(1), np.int8(0)], np.int8(UNKNOWN))
        return ComputedVotes(labels, np.isnan(chances), chances, problems)

    def _chances(
        self, features: Sequence[Feature], problems: Sequence[str], examples: Sequence[Example], voter: int
    ) -> Chances:
        """NaN where the model does not understand a feature."""
        understood = np.array([not problem for problem in problems])
        chances = np.full((len(examples), len(features)), np.nan)
        if understood.any():
            prompts = [self._prompt(features[place].name, voter) for place in np.flatnonzero(understood).tolist()]
            pictures = _pictures(examples)
            of_pictures = probability(log_odds(self._embeddings, list(pictures.values()), prompts))
            row_of = {digest: row for row, digest in enumerate(pictures)}
            chances[:, understood] = of_pictures[[row_of[example.digest] for example in examples]]
        return chances

    def _compare(self, question: Compare) -> Answer:
        shown = [*question.examples, *question.without]
        _pictures(shown)
        phrases = self._phrases()
        prompts = [self._prompt(phrase.name, question.voter) for phrase in phrases]
        odds = log_odds(self._embeddings, shown, prompts)
        named: list[NamedFeature] = []
        seen: list[str] = []
        while len(named) < question.most:
            allowed = self._allowed(phrases, (*question.known, *question.exclude, *(new.feature.name for new in named)))
            if question.kind is Kind.GROUPS:
                fit = best_between(odds, len(question.examples), allowed)
            elif question.kind is Kind.SHARED:
                fit = best_shared(odds, possible_counts(question.kind, len(shown)), allowed)
            else:
                fit = best_fit(odds, patterns_of(question), allowed)
            if fit is None:
                nothing = "no phrase differs clearly between the examples"
                seen.append(nothing if allowed.any() else "every phrase of the vocabulary is known or not wanted")
                break
            seen.append(f"{prompts[fit.phrase]}: {fit.probability:.4f}")
            if fit.probability < self._threshold:
                break
            phrase = phrases[fit.phrase]
            named.append(NamedFeature(Feature(phrase.name, phrase.definition), fit.shown))
        raw = "; ".join(seen[: max(len(named), 1)])
        if not named:
            return self._answer(question, Verdict.NONE, raw=raw)
        first, *more = named
        named_first = {"feature": first.feature, "shown": first.shown}
        return self._answer(question, Verdict.FEATURE, **named_first, more=tuple(more), raw=raw)

    def _answer(self, question: Question, verdict: Verdict, **rest: Any) -> Answer:
        return Answer(question, verdict, str(self.identity), **rest)

    def _phrases(self) -> list[Phrase]:
        """The phrases whose names the model understands."""
        if self._vocabulary is None:
            raise OracleUnavailable(
                f"model {self.identity.model!r} comes without a vocabulary to name features from: "
                "give one, as a file with a phrase on each line"
            )
        phrases = [p for p in self._vocabulary.phrases if self._embeddings.problem_with(p.name) is None]
        if not phrases:
            problem = self._embeddings.problem_with(self._vocabulary.phrases[0].name)
            raise OracleUnavailable(f"no phrase of the vocabulary can be used ({problem}): give other phrases")
        return phrases

    def _prompt(self, name: str, voter: int) -> str:
        """How a voter words a feature; wordings that the model does not understand are skipped."""
        if name not in self._sayable:
            phrase = self._vocabulary.phrase(name) if self._vocabulary else Phrase(name)
            prompts = (name, *phrase.prompts[1:])
            self._sayable[name] = tuple(p for p in prompts if self._embeddings.problem_with(p) is None)
        ways = self._sayable[name]
        return ways[voter % len(ways)]

    def _allowed(self, phrases: Sequence[Phrase], known: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each phrase is neither a known feature nor a synonym of one."""
        taken = {fold(name) for name in known}
        allowed = np.array([taken.isdisjoint(map(fold, phrase.prompts)) for phrase in phrases])
        understood = [name for name in known if self._embeddings.problem_with(name) is None]
        if understood:
            names = [phrase.name for phrase in phrases]
            allowed &= (closeness(self._embeddings, names, understood) < self._synonym).all(axis=1)
        return allowed


def _pictures(examples: Iterable[Example]) -> dict[str, Example]:
    """By digest, each once."""
    found: dict[str, Example] = {}
    for example in examples:
        if example.image is None:
            raise OracleUnavailable(
                f"example {example.id!r} is a text, and a contrastive oracle looks at pictures: "
                "use a data set of images, or an oracle that reads"
            )
        found[example.digest] = example
    return found


def _vocabulary(files: ModelFiles, wanted: Path | Sequence[str] | None) -> Vocabulary | None:
    if isinstance(wanted, Path):
        return read(wanted)
    if wanted is not None:
        return given(wanted)
    beside = Path(files.location) / FILE_NAME
    return read(beside) if beside.is_file() else None


def _name_vectors(files: ModelFiles, vocabulary: Vocabulary | None, vectors: Path | None) -> NameVectors | None:
    """None for a model that has a text tower of its own."""
    if not is_tower(files.location):
        if vectors is not None:
            raise OracleUnavailable(
                f"contrastive: model {files.name!r} has a text tower of its own, and vectors={str(vectors)!r} is for "
                "an image tower as an ONNX file: leave it out"
            )
        return None
    if vocabulary is None or vectors is None:
        missing = "vectors=FILE, a NumPy file with a row for each name" if vocabulary else "vocabulary=FILE, its names"
        raise OracleUnavailable(f"contrastive: tower {files.name!r} has no text tower beside it: add {missing}")
    return NameVectors(vocabulary, vectors)


def _weights_digest(folder: Path) -> str:
    """Of all files that decide a vector: weights, tokenizer and image processor. Independent of the folder's path."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in WEIGHT_FILES for path in folder.glob(pattern) if path.is_file()}):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
