"""Who does the runs of a study: this process, several processes, or a Ray cluster."""
