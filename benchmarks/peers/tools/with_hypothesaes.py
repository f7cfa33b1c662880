"""HypotheSAEs: an autoencoder on embeddings of the texts, its neurons explained, the explanations asked of all texts.

It has no budget, so that as many neurons are explained and annotated as the price of the first is likely to allow.
Embeddings are TF-IDF, reduced, for want of a sentence model; annotations by its short prompt, the cheaper one."""

from __future__ import annotations

import numpy as np
from hypothesaes.annotate import annotate_texts_with_concepts
from hypothesaes.quickstart import interpret_sae, train_sae
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.peers.job import MODEL, Job, Labels, given_job

NEURONS, ACTIVE = 64, 8
SHOWN = 10  # examples of each kind that explain a neuron
PER_TOKEN = 0.15e-6  # USD
TOKENS_PER_WORD, PROMPT = 1.4, 60  # of a text, and of the rest of a question


def label(job: Job) -> Labels:
    texts = [item.text or "" for item in job.items]
    size = min(50, len(texts) - 1)
    words = TfidfVectorizer(stop_words="english").fit_transform(texts)
    reduced = TruncatedSVD(size, random_state=0).fit_transform(words)
    vectors = reduced / np.linalg.norm(reduced, axis=1, keepdims=True)
    sae = train_sae(vectors, NEURONS, ACTIVE, n_epochs=200, show_progress=False)
    tokens = TOKENS_PER_WORD * sum(len(text.split()) for text in texts) + PROMPT * len(texts)
    explained = TOKENS_PER_WORD * 2 * SHOWN * tokens / len(texts)
    count = int(min(NEURONS, (job.budget or 1) / (PER_TOKEN * (tokens + explained))))
    terms = {"n_top_neurons": count, "interpreter_model": MODEL, "print_examples_n": 0}
    found = interpret_sae(texts, vectors, sae, n_examples_for_interpretation=2 * SHOWN, **terms)
    concepts = sorted({str(name) for name in found["interpretation"] if name})
    terms = {"annotate_prompt_name": "annotate-simple", "n_workers": job.concurrency, "show_progress": False}
    said = annotate_texts_with_concepts(texts, concepts, model=MODEL, **terms)
    return {item.id: {name: bool(said[name][place]) for name in concepts} for place, item in enumerate(job.items)}


if __name__ == "__main__":
    given = given_job()
    given.done(label(given), "hypothesaes")
