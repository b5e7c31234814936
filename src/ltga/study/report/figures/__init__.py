"""The figures of the study, each from the runs of an experiment to matplotlib."""
