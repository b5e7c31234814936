"""Published networks that LTGA is compared with, all called as ``model(x, edge_index, edge_attr=None)``."""

from ltga.nn.baselines.fagcn import FAGCN
from ltga.nn.baselines.gat import GAT, GATv2
from ltga.nn.baselines.gcn import GCN
from ltga.nn.baselines.gin import GIN
from ltga.nn.baselines.gprgnn import GPRGNN
from ltga.nn.baselines.h2gcn import H2GCN
from ltga.nn.baselines.linkx import LINKX
from ltga.nn.baselines.perceptron import Perceptron

__all__ = ["FAGCN", "GAT", "GCN", "GIN", "GPRGNN", "H2GCN", "LINKX", "GATv2", "Perceptron"]
