"""Data sets in the forms in which people have them, and what reading each of them gives.

`python -m tests.support.input_forms` writes the table of docs/data.md anew."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyarrow as pa
from PIL import Image

from tests.support.clouds import Clouds, clouds
from twothirds.sources import Columns, Dataset, DatasetError, keep_frame, load_dataset

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
BEGIN, END = "<!-- forms: begin -->", "<!-- forms: end -->"
JOKES = ["Why did the café close?", "It ran out of grounds."]
Maker = Callable[[Path, Clouds], str]


@dataclass(frozen=True)
class Form:
    name: str
    make: Maker  # writes the data set into a folder, or to a stand-in of a cloud; how a user would name it
    columns: Columns


FORMS: list[Form] = []


def form(name: str, **columns: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        FORMS.append(Form(name, make, Columns(**columns)))
        return make

    return add


def picture(colour: str, kind: str = "PNG", size: tuple[int, int] = (12, 9)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, kind)
    return written.getvalue()


def put(path: Path, content: str | bytes, encoding: str = "utf-8") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return str(path)


def rows(separator: str = ",", header: str = "id,text") -> str:
    lines = [header.split(","), *([f"{number}", joke] for number, joke in enumerate(JOKES, 1))]
    return "".join(separator.join(cells) + "\n" for cells in lines)


def archive(path: Path, members: dict[str, bytes]) -> str:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return str(path)


def shard(path: Path, first: int) -> str:
    members: dict[str, bytes] = {}
    for number, colour in enumerate(("red", "blue"), first):
        members |= {
            f"{number:06}.png": picture(colour if first == 0 else f"dark{colour}"),
            f"{number:06}.txt": JOKES[number % 2].encode(),
            f"{number:06}.json": json.dumps({"source": "made"}).encode(),
        }
    return archive(path, members)


form("CSV: commas, UTF-8")(lambda at, _: put(at / "jokes.csv", rows()))
form("CSV with a byte order mark")(lambda at, _: put(at / "jokes.csv", rows(), "utf-8-sig"))
form("CSV: semicolons, as spreadsheets write it")(lambda at, _: put(at / "jokes.csv", rows(";")))
form("CSV: tabs, and a first line `sep=`")(lambda at, _: put(at / "jokes.csv", "sep=\t\n" + rows("\t")))
form("TSV")(lambda at, _: put(at / "jokes.tsv", rows("\t")))
form("CSV in UTF-16")(lambda at, _: put(at / "jokes.csv", rows(), "utf-16"))
form("CSV in Windows-1252")(lambda at, _: put(at / "jokes.csv", rows(), "cp1252"))
form("CSV, compressed")(lambda at, _: put(at / "jokes.csv.gz", gzip.compress(rows().encode())))
form("CSV with `ID` and `Text`")(lambda at, _: put(at / "jokes.csv", rows(header="ID,Text")))
form("CSV, `--id-column key --text-column joke`", id="key", text="joke")(
    lambda at, _: put(at / "jokes.csv", rows(header="key,joke"))
)
form("CSV without an id column")(lambda at, _: put(at / "jokes.csv", "text\n" + "\n".join(JOKES)))
form("CSV without a text or image column")(lambda at, _: put(at / "jokes.csv", rows(header="id,joke")))
form("JSON, one list of objects")(
    lambda at, _: put(at / "jokes.json", json.dumps([{"id": place, "text": joke} for place, joke in enumerate(JOKES)]))
)
form("JSON, an object per line (JSONL), one of them broken")(
    lambda at, _: put(at / "jokes.jsonl", "\n".join([*(json.dumps({"id": j[:3], "text": j}) for j in JOKES), "{"]))
)


@form("Parquet with pictures inside (HuggingFace)")
def _parquet(at: Path, _: Clouds) -> str:
    frame = pd.DataFrame({"id": ["a"], "image": [{"bytes": picture("red"), "path": None}]})
    frame.to_parquet(at / "pets.parquet")
    return str(at / "pets.parquet")


@form("Parquet in parts, by a pattern")
def _parts(at: Path, _: Clouds) -> str:
    for part, joke in enumerate(JOKES):
        pd.DataFrame({"text": [joke]}).to_parquet(at / f"train-{part:05}-of-00002.parquet")
    return str(at / "train-*.parquet")


@form("Rows with text *and* picture")
def _both(at: Path, _: Clouds) -> str:
    put(at / "1.png", picture("red"))
    put(at / "2.png", picture("blue"))
    return put(at / "pets.csv", f"id,image,text\n1,1.png,{JOKES[0]}\n2,2.png,\n3,,{JOKES[1]}\n")


@form("Texts of 20,000 characters")
def _long(at: Path, _: Clouds) -> str:
    return put(at / "long.jsonl", "\n".join(json.dumps({"id": n, "text": f"{n} " * 10_000}) for n in (1, 2)))


@form("A folder of pictures in class folders, and one that is listed twice under two names")
def _folder(at: Path, _: Clouds) -> str:
    for name, colour in (("cats/1.png", "red"), ("dogs/2.png", "blue"), ("dogs/copy of 2.png", "blue")):
        put(at / name, picture(colour))
    return str(at)


@form("A folder of pictures with `metadata.csv` and its column `text`")
def _captions(at: Path, _: Clouds) -> str:
    put(at / "1.png", picture("red"))
    put(at / "metadata.csv", f"file_name,text,author\n1.png,{JOKES[0]},A\n")
    return str(at)


@form("A folder of odd pictures: AVIF, HEIC, 16 bits, transparent, animated, a JPEG called .png, damaged, empty, SVG")
def _odd(at: Path, _: Clouds) -> str:
    from pillow_heif import from_pillow

    put(at / "a.avif", picture("red", "AVIF"))
    heic = io.BytesIO()
    from_pillow(Image.new("RGB", (64, 64), "blue")).save(heic, quality=90)
    put(at / "b.heic", heic.getvalue())
    Image.new("I;16", (8, 8), 40_000).save(at / "c.png")
    Image.new("RGBA", (8, 8), (255, 0, 0, 10)).save(at / "d.png")
    frames = [Image.new("P", (8, 8), number) for number in (1, 2)]
    frames[0].save(at / "e.gif", save_all=True, append_images=frames[1:])
    put(at / "f.png", picture("green", "JPEG"))
    put(at / "g.png", picture("red")[:40])
    put(at / "h.png", b"")
    put(at / "i.svg", "<svg/>")
    return str(at)


@form("A folder of .txt files")
def _texts(at: Path, _: Clouds) -> str:
    put(at / "good" / "1.txt", JOKES[0])
    put(at / "bad" / "2.txt", "Caf\xe9 au lait", "cp1252")
    return str(at)


@form("A zip archive of pictures")
def _zip(at: Path, _: Clouds) -> str:
    with zipfile.ZipFile(at / "pets.zip", "w") as packed:
        packed.writestr("pets/1.png", picture("red"))
        packed.writestr("pets/2.png", picture("blue"))
    return str(at / "pets.zip")


form("A tar archive of pictures")(
    lambda at, _: archive(at / "pets.tar", {"cats/1.png": picture("red"), "dogs/2.png": picture("blue")})
)


@form("WebDataset shards: pictures with texts")
def _shards(at: Path, _: Clouds) -> str:
    for number in (0, 1):
        shard(at / f"pets-{number:04}.tar", 2 * number)
    return str(at / "pets-{0000..0001}.tar")


form("A compressed tar archive")(lambda at, _: put(at / "pets.tar.gz", b""))


@form("A HuggingFace Dataset saved to disk")
def _saved(at: Path, _: Clouds) -> str:
    table = pa.table({"text": JOKES, "label": [0, 1]})
    with pa.OSFile(str(at / "data-00000-of-00001.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as file:
        file.write_table(table)
    put(at / "state.json", json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    put(at / "dataset_info.json", "{}")
    return str(at)


@form("A pandas DataFrame, from Python: `discover(frame)`")
def _frame(at: Path, _: Clouds) -> str:
    frame = pd.DataFrame({"id": ["a", "b"], "image": [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]})
    return str(keep_frame(frame, at / "kept"))


@form("A folder on S3")
def _s3(_: Path, clouds: Clouds) -> str:
    clouds.put_s3("pets/pictures/1.png", picture("red"))
    clouds.put_s3("pets/pictures/2.png", picture("blue"))
    return "s3://pets/pictures"


@form("WebDataset shards on S3")
def _s3_shards(at: Path, clouds: Clouds) -> str:
    for number in (0, 1):
        clouds.put_s3(f"pets/shards/{number:04}.tar", Path(shard(at / "local.tar", 2 * number)).read_bytes())
    return "s3://pets/shards/{0000..0001}.tar"


@form("A table on Google Cloud Storage")
def _gcs(_: Path, clouds: Clouds) -> str:
    clouds.put_gcs("pets/jokes.csv", rows().encode())
    return "gs://pets/jokes.csv"


@form("A data set of the HuggingFace hub")
def _hub(at: Path, clouds: Clouds) -> str:
    pd.DataFrame({"text": JOKES}).to_parquet(at / "part.parquet")
    clouds.put_hub("someone/jokes", "data/train-00000-of-00001.parquet", (at / "part.parquet").read_bytes())
    clouds.put_hub("someone/jokes", "README.md", b"# Jokes")
    return "hf://datasets/someone/jokes"


form("Audio")(lambda at, _: put(at / "song.mp3", b"ID3"))


def outcome(form: Form, folder: Path, clouds: Clouds) -> tuple[Dataset | None, str]:
    """The data set, and what a user is told about it."""
    spec = form.make(folder, clouds)
    try:
        data = load_dataset(spec, form.columns)
    except DatasetError as problem:
        return None, f"refused: {_without(folder, str(problem))}"
    return data, "; ".join([_counted(data), *(_without(folder, line) for line in data.lines())])


def _counted(data: Dataset) -> str:
    both = sum(one.text is not None and one.image is not None for one in data.examples)
    texts = sum(one.image is None for one in data.examples)
    pictures = len(data.examples) - both - texts
    parts = (
        (both, "picture with text", "pictures with text"),
        (pictures, "picture", "pictures"),
        (texts, "text", "texts"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in parts if count)


def _without(folder: Path, line: str) -> str:
    return re.sub(r"table-[0-9a-f]{12}", "table-…", line.replace(f"{folder}/", ""))


def table_of_forms(folder: Path, clouds: Clouds) -> list[str]:
    lines = ["| # | form | what happens |", "|---|---|---|"]
    for number, one in enumerate(FORMS, 1):
        at = folder / f"{number}"
        at.mkdir()
        _, message = outcome(one, at, clouds)
        lines.append(f"| {number} | {one.name} | {message.replace('|', '·')} |")
    return lines


def with_table(page: str, table: list[str]) -> str:
    before, _, rest = page.partition(BEGIN)
    return "\n".join([before + BEGIN, *table, END + rest.partition(END)[2]])


if __name__ == "__main__":
    with TemporaryDirectory() as folder, ExitStack() as stack:
        made = table_of_forms(Path(folder), stack.enter_context(clouds()))
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
