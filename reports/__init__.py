"""What a run leaves behind: the run folder, reports, exports."""
