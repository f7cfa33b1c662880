"""A tokenizer that reads a text once however often a batch repeats it.

One feature is asked of many pictures in the same words, and a processor hands all of them to its tokenizer."""

from __future__ import annotations

from typing import Any


class EachTextOnce:
    """Stands in for a transformers tokenizer inside a processor; everything but the call is the tokenizer's own."""

    def __init__(self, tokenizer: Any) -> None:
        self._wrapped = tokenizer

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped" or name.startswith("__"):  # asked for by copying, before there is a tokenizer
            raise AttributeError(name)
        return getattr(self._wrapped, name)

    def __call__(self, text: Any = None, *others: Any, **options: Any) -> Any:
        texts = text if isinstance(text, list) and all(isinstance(one, str) for one in text) else []
        rows = {one: row for row, one in enumerate(dict.fromkeys(texts))}
        if others or options.get("text_pair") is not None or len(rows) == len(texts):
            return self._wrapped(text, *others, **options)
        encoded = self._wrapped([*rows], **options)
        places = [rows[one] for one in texts]
        for name, values in encoded.items():
            encoded[name] = [values[place] for place in places] if isinstance(values, list) else values[places]
        return encoded
