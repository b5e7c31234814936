from fixtures.small_runs import graph, one_thread, pruning_run_of, run_of  # noqa: F401
