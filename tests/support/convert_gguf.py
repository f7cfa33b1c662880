"""Writes the model of a GGUF file as a folder that `vlm:` reads: python convert_gguf.py FOLDER_OF_THE_FILE OUT."""

from __future__ import annotations

import sys
from pathlib import Path


def convert(folder: Path, out: Path) -> None:
    """The weights are as coarse as in the file, four bits each, and kept as float32."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (file,) = folder.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file.name)
    read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name)
    for name in ("quantization_config", "_pre_quantization_dtype"):  # a quantized model cannot be saved
        if hasattr(read.config, name):
            delattr(read.config, name)
    model = type(read)(read.config)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
