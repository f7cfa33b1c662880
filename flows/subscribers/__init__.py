"""Who watches a run: each is called with every event of the stream that it is given to."""
