"""Tasks beside node classification: numbers and labels of nodes, whole graphs, links; what is learned of each."""
