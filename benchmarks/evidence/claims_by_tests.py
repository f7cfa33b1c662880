"""What the project claims and tests hold it to: the experiment is the tests, and one that fails refutes the claim."""

from __future__ import annotations

from benchmarks.evidence.claims import Claim

PYTEST = ("pytest", "-p", "no:cacheprovider", "-m", "not slow")
RESULT = (r".*\d+ (passed|failed|error).*",)


def _held(
    title: str,
    claim: str,
    experiment: str,
    data: str,
    *tests: str,
    refuted: str = "one of these tests fails",
    judged: str,
    slow: bool = False,
) -> Claim:
    command = (*PYTEST[: 3 if slow else None], *(f"tests/{one}" for one in tests))
    return Claim(title, claim, experiment, data, command, RESULT, refuted, judged)


BY_TESTS = (
    _held(
        "No answer is paid for twice, and no budget exceeded",
        "Every answer is stored: a run that crashes resumes where it stopped and does not pay again for answers it "
        "already has. Every call is charged to its run, and a budget is never exceeded.",
        "Kills at some boundaries, many processes on one store, failing servers; the books are held against theirs.",
        "made for the tests",
        *("crash", "integration/store/test_budget.py", "integration/store/test_processes.py"),
        judged="2026-11-17: held, by the quick tests; `make test-slow` has 54 more, among them a kill at every "
        "boundary. A request that was under way when a process died may be charged once more, and is booked.",
    ),
    _held(
        "Killed and run again, it asks no question twice",
        "Kill it and run it again: it resumes and asks no question twice.",
        "A discovery is killed in the middle by SIGKILL and repeated, and held against one that was left alone; two "
        "processes run the same settings at once.",
        "30 drawn faces, a simulated crowd that is paid",
        "e2e/flows/discover/test_resume.py",
        judged="2026-11-17: held. `make test-slow` kills three and ten times.",
    ),
    _held(
        "No key and no network",
        "`make discover` discovers features of 100 drawn faces: no key, no network.",
        "All processes of the command write down whatever host they look up or connect to.",
        "datasets/faces, the model that ships; 5 questions",
        "e2e/flows/discover/test_no_network.py",
        slow=True,
        refuted="a host other than this machine is looked up or connected to",
        judged="2026-11-17: held for what Python connects to; setting up the environment needs the package index once.",
    ),
    _held(
        "Any model answers",
        "The oracle is the model that ships, any CLIP or SigLIP model, any local transformers model, or any "
        "OpenAI-compatible server.",
        "Real architectures with few weights, and servers with the abilities and the faults of several makes.",
        "models of some 100,000 random weights, and local servers",
        *("integration/models/contrastive", "integration/models/local", "integration/models/openai/test_oracle.py"),
        "integration/models/openai/test_lifelike.py",
        "integration/models/openai/test_transformers_serve.py",
        refuted="a model that the page of oracles calls supported cannot be asked",
        judged="2026-11-17: held for what was tried, which is not *any*: CLIP, SigLIP, LLaVA and Llama architectures, "
        "transformers serve, and one real language model (below). No hosted model was asked.",
    ),
    _held(
        "People answer on a page",
        "To ask people instead of a model, or in addition to one, use `--oracle human` and `python -m flows review`.",
        "Two reviewers in two browsers answer a discovery; a model's labels in doubt go to people.",
        "drawn faces, Chromium driven by the test",
        *("e2e/flows/reviewing/test_discovery.py", "integration/models/people/test_mixed.py"),
        judged="2026-11-17: held with programs in the place of people: no person used the page for this.",
    ),
    _held(
        "The report is a single file",
        "The run folder contains `report.html`, a single file that you can share.",
        "Chromium opens it from disk and counts what it asks for; markup in names and texts is tried.",
        "runs made for the tests",
        "e2e/reports/page",
        judged="2026-11-17: held.",
    ),
    _held(
        "Data sets in any of the forms named",
        "A data set is a folder of images or texts, a table (CSV, JSON, Parquet), an archive, WebDataset shards or a "
        "HuggingFace Dataset, here or at s3://, gs:// or hf://.",
        "The same examples in 33 forms, read and held against each other; buckets and hubs are servers of the test.",
        "made for the tests",
        *("integration/sources/test_forms.py", "integration/sources/test_urls.py"),
        refuted="a form gives other examples, ids or contents than the folder",
        judged="2026-11-17: held, with local servers in the place of the clouds.",
    ),
    _held(
        "The same from Python",
        "`flows.api` has everything that the command line does with data sets and runs.",
        "The three lines of the README, and every function, in a plain program and inside a running event loop.",
        "drawn faces, a simulated crowd",
        "e2e/flows/cli/test_from_python.py",
        judged="2026-11-17: held.",
    ),
    _held(
        "Statistics of comparisons are right",
        "To see where a model and people differ, run `python -m flows compare`.",
        "Each statistic against another implementation (scikit-learn, krippendorff, statsmodels, crowd-kit, scipy, "
        "ppi-python), and intervals against annotators whose errors are known.",
        "made-up votes",
        *("unit/discovery/statistics", "unit/reports/compare", "integration/flows/compare/test_weak_oracle.py"),
        refuted="a figure differs from the other implementation's, or an interval misses more often than it says",
        judged="2026-11-17: held. People's own votes are below.",
    ),
)
