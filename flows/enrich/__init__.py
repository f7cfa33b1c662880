"""The enrich flow, which labels what is new and proposes new features."""
