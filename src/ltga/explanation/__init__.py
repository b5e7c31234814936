"""What a model did with every edge of a graph, as a table, as files, and as a page to look at."""
