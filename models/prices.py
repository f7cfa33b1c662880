"""What tokens cost: by the table of genai-prices, which works offline, or by the user's own prices.

A settled charge is usage × price, rounded once per request to the nearest micro-dollar; a bound is rounded up."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Protocol

from twothirds.models.oracle import MICRO, Money, OracleError

BATCH_SHARE = Decimal("0.5")  # what a provider's batch API costs, of the usual price
TOKENS_LIMIT = 100_000_000  # no request has more: a reply that says so is not believed
KEPT_SUMS = 20_000
MAX_PRICE_USD = 10**6  # of an answer or of a million tokens: sums of more would not fit the columns of the store
PRICE_KEYS = ("input", "output", "cached", "cache_write")


class UnknownPrice(OracleError):
    pass


@dataclass(frozen=True, slots=True)
class Tokens:
    input: int = 0
    output: int = 0
    cached: int = 0  # of the input, read from the provider's cache
    cache_write: int = 0  # of the input, written to it
    reasoning: int = 0  # of the output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens, as the user gives it. What is not said of cached tokens costs as much as other input."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_write: Decimal | None = None

    def usd(self, tokens: Tokens) -> Decimal:
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        plain = tokens.input - tokens.cached - tokens.cache_write
        total = plain * self.input + tokens.cached * cached + tokens.cache_write * written + tokens.output * self.output
        return total / MICRO


class Tariff(Protocol):
    def usd(self, tokens: Tokens) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """The price of a model in genai-prices' table, as it is today, with its tiers."""

    model: Any  # genai_prices.types.ModelInfo
    provider: Any
    _known: dict[tuple[Tokens, int], Decimal] = field(default_factory=dict, compare=False, repr=False)

    def usd(self, tokens: Tokens) -> Decimal:
        """The table is slow to ask and its prices may change by the hour: what it said is kept for that long."""
        key = (tokens, int(time.time() // 3600))
        if key not in self._known:
            if len(self._known) >= KEPT_SUMS:
                self._known.clear()
            self._known[key] = self._asked(tokens)
        return self._known[key]

    def _asked(self, tokens: Tokens) -> Decimal:
        from genai_prices import Usage

        usage = Usage(
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cache_read_tokens=tokens.cached,
            cache_write_tokens=tokens.cache_write,
        )
        total: Decimal = self.model.calc_price(usage, self.provider).total_price
        return total


def settled(tariff: Tariff, tokens: Tokens, *, batch: bool = False) -> Money:
    return _micro(tariff.usd(tokens), batch, ROUND_HALF_EVEN)


def bound(tariff: Tariff, tokens: Tokens, *, batch: bool = False) -> Money:
    """At most what this many tokens cost: written to the cache they may cost more than plain ones."""
    written = Tokens(tokens.input, tokens.output, cache_write=tokens.input)
    plain = Tokens(tokens.input, tokens.output)
    return _micro(max(tariff.usd(written), tariff.usd(plain)), batch, ROUND_CEILING)


def _micro(usd: Decimal, batch: bool, rounding: str) -> Money:
    return int((usd * MICRO * (BATCH_SHARE if batch else 1)).to_integral_value(rounding=rounding))


def tariff_of(model: str, *, base_url: str | None, prices: Mapping[str, Price], endpoint: str = "chat") -> Tariff:
    """The user's price for the model (or for "*"), else the one listed for the server, else for the name alone."""
    given = prices.get(model) or prices.get("*")
    if given is not None:
        return given
    listed = _listed(model, base_url, endpoint)
    if listed is None:
        raise UnknownPrice(
            f"the price of model {model!r} is not known: give it in USD per million input and output tokens, as in "
            f"openai:{model}?price=0.15,0.60 (0,0 for a server of your own), or in a file, by ?prices=FILE"
        )
    return listed


def _listed(model: str, base_url: str | None, endpoint: str) -> ListedPrice | None:
    from genai_prices.data_snapshot import get_snapshot

    table = get_snapshot()
    url = base_url or "https://api.openai.com/v1"
    providers: list[dict[str, str | None]] = [{"provider_id": None, "provider_api_url": url}]
    if endpoint == "decisions":
        providers.insert(0, {"provider_id": "openai-decisions", "provider_api_url": None})
    providers.append({"provider_id": None, "provider_api_url": None})
    for known in providers:
        try:
            provider, found = table.find_provider_model(model, None, **known)
        except LookupError:
            continue
        if found.prices:
            return ListedPrice(found, provider)
    return None


def parse_price(text: str) -> Price:
    """`INPUT,OUTPUT[,CACHED[,CACHE_WRITE]]` in USD per million tokens."""
    numbers = text.split(",")
    if not 2 <= len(numbers) <= len(PRICE_KEYS):
        raise OracleError(f"price {text!r}: give USD per million input and output tokens, as in 0.15,0.60")
    return _price(dict(zip(PRICE_KEYS, numbers, strict=False)), f"price {text!r}")


def read_prices(path: Path) -> dict[str, Price]:
    """A JSON file that says {"MODEL": {"input": 0.15, "output": 0.6, "cached": 0.075}}, USD per million tokens."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise OracleError(f"price file {str(path)!r} cannot be read: {problem.strerror}; check the path") from None
    except (ValueError, RecursionError):
        raise OracleError(f"price file {str(path)!r} is not JSON: see docs/oracles.md for its form") from None
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise OracleError(f'price file {str(path)!r} must say {{"MODEL": {{"input": 0.15, "output": 0.6}}}}')
    return {model: _price(entry, f"price of {model!r} in {str(path)!r}") for model, entry in table.items()}


def _price(entry: Mapping[str, object], where: str) -> Price:
    unknown = set(entry) - set(PRICE_KEYS)
    if unknown:
        raise OracleError(f"{where}: {sorted(unknown)[0]!r} is not one of {', '.join(PRICE_KEYS)}")
    try:
        numbers = {key: Decimal(str(value).strip()) for key, value in entry.items() if value is not None}
        if any(not number.is_finite() or number < 0 for number in numbers.values()):
            raise InvalidOperation
        price = Price(**numbers)
    except (InvalidOperation, TypeError):
        raise OracleError(f"{where}: give input and output as USD per million tokens, such as 0.15 and 0.60") from None
    if any(number > MAX_PRICE_USD for number in numbers.values()):
        raise OracleError(f"{where}: at most {MAX_PRICE_USD:,} USD per million tokens can be counted")
    return price


def read_usage(reply: Mapping[str, Any]) -> Tokens | None:
    """The usage block of a reply (chat's or the newer endpoints' spelling); None where it is missing or absurd."""
    usage = reply.get("usage")
    if not isinstance(usage, dict):
        return None
    given = _count(usage, "prompt_tokens", "input_tokens")
    written = _count(usage, "completion_tokens", "output_tokens")
    if given is None or written is None:
        return None
    read = _details(usage, "prompt_tokens_details", "input_tokens_details")
    thought = _details(usage, "completion_tokens_details", "output_tokens_details")
    cached = min(_count(read, "cached_tokens") or 0, given)
    stored = min(_count(read, "cache_write_tokens") or 0, given - cached)
    return Tokens(given, written, cached, stored, min(_count(thought, "reasoning_tokens") or 0, written))


def _details(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((usage[name] for name in names if isinstance(usage.get(name), dict)), {})


def _count(block: Mapping[str, Any], *names: str) -> int | None:
    value = next((block[name] for name in names if block.get(name) is not None), None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= TOKENS_LIMIT else None  # neither is true of NaN
