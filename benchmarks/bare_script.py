"""What one would write by hand: label a folder of pictures with the shipped model, in batches, and save a table.

python -m benchmarks.bare_script FOLDER FEATURES.csv OUT.parquet"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import torch
from PIL import Image
from transformers import AutoModel, SiglipProcessor

MODEL, BATCH = Path(__file__).resolve().parents[1] / "models" / "faces", 64


def main(folder: str, features: str, out: str) -> None:
    names = Path(features).read_text(encoding="utf-8").splitlines()[1:]
    model, processor = AutoModel.from_pretrained(MODEL).eval(), SiglipProcessor.from_pretrained(MODEL)
    paths = sorted(Path(folder).glob("*.png"))
    with torch.inference_mode():
        words = processor.tokenizer(names, padding="max_length", return_tensors="pt")["input_ids"]
        phrases = torch.nn.functional.normalize(model.get_text_features(input_ids=words).pooler_output, dim=-1)
        rows = []
        for start in range(0, len(paths), BATCH):
            pictures = [Image.open(path).convert("RGB") for path in paths[start : start + BATCH]]
            pixels = processor.image_processor(images=pictures, return_tensors="pt")
            seen = torch.nn.functional.normalize(model.get_image_features(**pixels).pooler_output, dim=-1)
            rows.append(model.logit_scale.exp() * seen @ phrases.T + model.logit_bias > 0)
    table = pd.DataFrame(torch.cat(rows).numpy().astype("int8"), columns=names)
    table.insert(0, "id", [path.name for path in paths])
    table.to_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
