"""Answers of packs: read, counted as used, and given rows of their own where anything unusual is to be done."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, func, insert, select, update

from store.packed.claims import PACKED_FENCE
from store.packed.content import COUNTS, Content, PackedAnswer, bits, checksum, decode, places, recode
from store.packed.keys import PackPlace, find_packed, remove
from store.schema import (
    PAID,
    answer_checksum,
    answers,
    charges,
    identities,
    json_text,
    json_value,
    packed_uses,
    packs,
    question_forms,
    runs,
    uses,
)
from store.sql import KEYS, any_of, insert_new, json_array


class Pack(NamedTuple):
    """A pack as it is stored. `scope` is that of the run that paid for it."""

    id: int
    run: int
    scope: int
    identity: int
    oracle: str
    kind: str
    size: int
    gone: int
    cost: int
    answered_at: float

    @property
    def left(self) -> int:
        """The places, as bits, whose answers are kept here."""
        return ((1 << self.size) - 1) & ~self.gone


_OF = {"scope": runs.c.scope, "oracle": identities.c.oracle}
ABOUT = tuple(_OF[name] if name in _OF else packs.c[name] for name in Pack._fields)
JOINED = packs.join(runs, runs.c.id == packs.c.run).join(identities, identities.c.id == packs.c.identity)
_PACKS_BY_ID = select(*ABOUT).select_from(JOINED).where(any_of(packs.c.id)).order_by(packs.c.id)
_ALL = select(*ABOUT).select_from(JOINED)
_CONTENTS = select(packs.c.id, packs.c.content).where(any_of(packs.c.id))
_TIMES = select(packs.c.id, packs.c.answered_at).where(any_of(packs.c.id))
_SCOPES = select(packs.c.id, runs.c.scope).join(runs, runs.c.id == packs.c.run).where(any_of(packs.c.id))
_OF_RUN, _OF_SCOPE = (bindparam(name, type_=BigInteger) for name in ("of_run", "of_scope"))
_USES = select(packed_uses.c.run, packed_uses.c.pack, packed_uses.c.places).where(any_of(packed_uses.c.pack))
_USES_OF_RUN = _USES.where(packed_uses.c.run == _OF_RUN)
_USES_IN_SCOPE = _USES.where(packed_uses.c.run.in_(select(runs.c.id).where(runs.c.scope == _OF_SCOPE)))
_USE_MORE = (
    update(packed_uses)
    .where(packed_uses.c.run == bindparam("by"), packed_uses.c.pack == bindparam("of_pack"))
    .values(places=bindparam("now_used"))
)
_TAKE_OUT = (
    update(packs)
    .where(packs.c.id == bindparam("of_pack"))
    .values(gone=bindparam("now_gone"), cost=bindparam("cost_left"))
)
_FORMS = select(question_forms.c.digest, question_forms.c.id).where(question_forms.c.digest.in_(json_array()))
_FORM_TEXTS = select(question_forms.c.id, question_forms.c.form).where(any_of(question_forms.c.id))


def form_of(question: Mapping[str, Any]) -> str:
    """The question without its example, as text."""
    if question.keys() == _PLAIN:
        name, definition = question["feature"]
        return _plain_form(question["kind"], name, definition, question["voter"])
    return json_text({name: value for name, value in question.items() if name != "example"})


_PLAIN = {"kind", "feature", "example", "voter"}


@lru_cache(maxsize=4_096)
def _plain_form(kind: str, name: str, definition: str, voter: int) -> str:
    """Of most labels. Features come again with every example."""
    return json_text({"kind": kind, "feature": [name, definition], "voter": voter})


def form_numbers(connection: Connection, forms: Collection[str]) -> dict[str, int]:
    """The rows of these forms, inserted where they are new. Nothing is remembered: a transaction may be rolled back,
    and a number be given to another form."""
    wanted = {_digest(form): form for form in set(forms)}
    values = {"keys": sorted(wanted)}
    found = {wanted[digest]: number for digest, number in connection.execute(_FORMS, values)} if wanted else {}
    if len(found) == len(wanted):
        return found
    new = [{"digest": digest, "form": json_value(form)} for digest, form in sorted(wanted.items()) if form not in found]
    insert_new(connection, question_forms, new)
    return {wanted[digest]: number for digest, number in connection.execute(_FORMS, values)}


@lru_cache(maxsize=4_096)
def _digest(form: str) -> str:
    return hashlib.sha256(form.encode()).hexdigest()


def contents_of(connection: Connection, numbers: Iterable[int]) -> dict[int, Content]:
    wanted = sorted(set(numbers))
    rows = connection.execute(_CONTENTS, {"keys": wanted}).tuples().all() if wanted else ()
    return {number: decode(content) for number, content in rows}


def lookup_packed(connection: Connection, keys: Collection[str]) -> dict[str, dict[str, Any]]:
    """The answers of those of the keys that are packed and answered."""
    found = find_packed(connection, keys)
    contents = contents_of(connection, (at.pack for at in found.values()))
    return {key: contents[at.pack].answer(at.place) for key, at in found.items() if at.pack in contents}


def packed_members(connection: Connection, name: str, keys: Collection[str]) -> dict[str, Any]:
    found = find_packed(connection, keys)
    contents = contents_of(connection, (at.pack for at in found.values()))
    return {key: contents[at.pack].member(name, at.place) for key, at in found.items() if at.pack in contents}


def count_packed(connection: Connection) -> int:
    """How many answers are packed."""
    return sum(Pack._make(row).left.bit_count() for row in connection.execute(_ALL))


def packed_times(connection: Connection, found: Mapping[str, PackPlace]) -> dict[str, float]:
    """When those that are answered were."""
    numbers = sorted({at.pack for at in found.values()})
    answered = dict(connection.execute(_TIMES, {"keys": numbers}).tuples().all()) if numbers else {}
    return {key: answered[at.pack] for key, at in found.items() if at.pack in answered}


def packed_scopes(connection: Connection, found: Mapping[str, PackPlace]) -> dict[str, int]:
    """The scopes whose runs have paid for those that are answered."""
    numbers = sorted({at.pack for at in found.values()})
    scope_of = dict(connection.execute(_SCOPES, {"keys": numbers}).tuples().all()) if numbers else {}
    return {key: scope_of[at.pack] for key, at in found.items() if at.pack in scope_of}


class Used(NamedTuple):
    """Answers of one oracle and kind that a run begins to use: how many, what they had cost, and how many of them are
    new to the scope."""

    oracle: str
    kind: str
    calls: int
    worth: int
    new: int


def note_packed_uses(connection: Connection, run: int, scope: int, found: Mapping[str, PackPlace]) -> list[Used]:
    """Note that the run uses these answers; returns what is to be counted, which is nothing of what it has paid for."""
    wanted: dict[int, int] = defaultdict(int)
    for at in found.values():
        wanted[at.pack] |= 1 << at.place
    numbers = {"keys": sorted(wanted)}
    used_packs = [Pack._make(row) for row in connection.execute(_PACKS_BY_ID, numbers)] if wanted else []
    mine = _places(connection, _USES_OF_RUN, {"of_run": run, **numbers}) if used_packs else {}
    others = any(pack.scope != scope for pack in used_packs)
    in_scope = _places(connection, _USES_IN_SCOPE, {"of_scope": scope, **numbers}) if others else {}
    more, used = [], []
    for pack in used_packs:
        before = mine.get(pack.id, 0)
        begun = wanted[pack.id] & pack.left & ~before
        if not begun:
            continue
        more.append((pack.id, before, before | begun))
        if pack.run != run:
            new = 0 if pack.scope == scope else (begun & ~in_scope.get(pack.id, 0)).bit_count()
            used.append(Used(pack.oracle, pack.kind, begun.bit_count(), _worth(connection, pack, begun), new))
    insert_new(connection, packed_uses, [{"run": run, "pack": at, "places": now} for at, was, now in more if not was])
    again = [{"by": run, "of_pack": at, "now_used": now} for at, was, now in more if was]
    if again:
        connection.execute(_USE_MORE, again)
    return used


def _places(connection: Connection, query: Any, values: Mapping[str, Any]) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    for _run, pack, used in connection.execute(query, dict(values)).tuples():
        found[pack] |= used
    return found


def _worth(connection: Connection, pack: Pack, used: int) -> int:
    if used == pack.left:
        return pack.cost
    costs = contents_of(connection, [pack.id])[pack.id].column("cost")
    return sum(costs[place] for place in places(used))


def latest_packed(
    connection: Connection, made_by: Collection[int], most: int
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Question and answer of those among the latest that these identities gave."""
    newest = connection.execute(select(func.max(packs.c.id))).scalar() or 0
    recent = select(packs.c.content).where(packs.c.id > newest - most, packs.c.identity.in_(made_by))
    contents = [decode(content) for content in connection.execute(recent.order_by(packs.c.id)).scalars()]
    forms = forms_of(connection, contents)
    every = [content.at(place) for content in contents for place in range(content.size)]
    return [(question_of(answer, forms), dict(answer.answer)) for answer in every]


def forms_of(connection: Connection, contents: Iterable[Content]) -> dict[int, dict[str, Any]]:
    """The forms of the questions in these packs, by number."""
    numbers = sorted({number for content in contents for number in content.column("form")})
    return dict(connection.execute(_FORM_TEXTS, {"keys": numbers}).tuples().all()) if numbers else {}


def unpack(connection: Connection, keys: Collection[str]) -> None:
    """Give answers that are packed, their charges and their uses rows of their own."""
    found = find_packed(connection, keys)
    numbers = {"keys": sorted({at.pack for at in found.values()})}
    locked = connection.execute(_PACKS_BY_ID.with_for_update(of=packs), numbers) if found else ()
    by_number = {pack.id: pack for pack in map(Pack._make, locked)}
    contents = contents_of(connection, by_number)
    forms = forms_of(connection, contents.values())
    for number, pack in by_number.items():
        here = {at.place: key for key, at in found.items() if at.pack == number}
        unpacked = {key: contents[number].at(place) for place, key in here.items()}
        connection.execute(insert(charges), [_charge(pack, key, answer) for key, answer in unpacked.items()])
        connection.execute(insert(answers), [_answer(pack, key, answer, forms) for key, answer in unpacked.items()])
        ids = select(answers.c.key, answers.c.id).where(answers.c.key.in_(KEYS))
        rows = dict(connection.execute(ids, {"keys": list(unpacked)}).tuples().all())
        users = connection.execute(_USES, {"keys": [number]}).all()
        used = [(use.run, rows[here[place]]) for use in users for place in places(use.places) if place in here]
        insert_new(connection, uses, [{"run": run, "answer": answer} for run, answer in used])
        left = {
            "now_gone": pack.gone | bits(list(here)),
            "cost_left": pack.cost - sum(o.cost for o in unpacked.values()),
        }
        connection.execute(_TAKE_OUT, {"of_pack": number} | left)
        remove(connection, unpacked)


def _charge(pack: Pack, key: str, answer: PackedAnswer) -> dict[str, Any]:
    return {
        "key": key,
        "fence": PACKED_FENCE,
        "run": pack.run,
        "oracle": pack.oracle,
        "kind": pack.kind,
        "state": PAID,
        "owner": "",
        "token": "",
        "lease_seconds": 0.0,
        "lease_until": pack.answered_at,
        **{name: getattr(answer, name) for name in COUNTS},
        "reserved": answer.cost,
        "claimed_at": pack.answered_at,
        "settled_at": pack.answered_at,
        "in_doubt": 0,
    }


def question_of(answer: PackedAnswer, forms: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    return {**forms.get(answer.form, {}), "example": answer.example}


def _answer(pack: Pack, key: str, packed: PackedAnswer, forms: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    question, answer = question_of(packed, forms), dict(packed.answer)
    origin = {"key": key, "identity": pack.identity, "kind": pack.kind, "answered_at": pack.answered_at}
    summed = answer_checksum(json_text(question), json_text(answer), packed.cost)
    return origin | {"question": question, "answer": answer, "cost": packed.cost, "checksum": summed}


RAW = "raw"  # the member of an answer that holds the reply as it came
_LOCKED = select(packs.c.id, packs.c.content).where(any_of(packs.c.id)).order_by(packs.c.id).with_for_update()
_REWRITE = (
    update(packs)
    .where(packs.c.id == bindparam("of_pack"))
    .values(content=bindparam("new_content"), checksum=bindparam("new_checksum"))
)


def remove_packed_replies(connection: Connection, keys: Iterable[str]) -> None:
    """Without their raw text the answers are as before; the checksums of the packs are made again."""
    wanted = defaultdict(set)
    for at in find_packed(connection, keys).values():
        wanted[at.pack].add(at.place)
    rows = connection.execute(_LOCKED, {"keys": sorted(wanted)}).tuples().all() if wanted else ()
    new = []
    for number, content in rows:
        shorter = recode(decode(content), RAW, wanted[number], "")
        new.append({"of_pack": number, "new_content": shorter, "new_checksum": checksum(shorter)})
    if new:
        connection.execute(_REWRITE, new)
