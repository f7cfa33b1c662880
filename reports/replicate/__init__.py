"""The paper's claims, tables and figures: one module each."""

from reports.replicate.claim import FULL, QUICK, ClaimResult, Job, Scale, Topic, processes, run_jobs
from reports.replicate.page import TOPICS, write_page
