"""Edges that carry features: W_e e joins the scored vectors, and its gradients, edge by edge."""

from __future__ import annotations

from ltga.kernels.numba.scalar import leaf, row


@leaf()
def with_edge(row, edge_attr, edge_weight, edge, buffer):  # type: ignore[no-untyped-def]
    """A node's row plus W_e e for one edge, into buffer [H, C]; edge_weight is [D, H, C]."""
    for h in range(buffer.shape[0]):
        for c in range(buffer.shape[1]):
            buffer[h, c] = row[h, c]
        for f in range(edge_attr.shape[1]):
            a = edge_attr[edge, f]
            for c in range(buffer.shape[1]):
                buffer[h, c] += a * edge_weight[f, h, c]


@row()
def score_with_edges(  # type: ignore[no-untyped-def]
    i, start, end, col, perm, x, target, att, edge_attr, edge_weight, gatv2, slope, dot_scale, buffer, logits
):
    """Logits of row i: edge features join the target (GATv2) or the key (dot product)."""
    for k in range(start, end):
        j = col[k]
        with_edge(target[i] if gatv2 else x[j], edge_attr, edge_weight, perm[k], buffer)
        for h in range(x.shape[1]):
            total = x.dtype.type(0)
            if gatv2:
                for c in range(x.shape[2]):
                    t = x[j, h, c] + buffer[h, c]
                    total += att[h, c] * (t if t > 0 else slope * t)
            else:
                for c in range(x.shape[2]):
                    total += buffer[h, c] * target[i, h, c]
                total *= dot_scale
            logits[k, h] = total


@row()
def edge_gradients(  # type: ignore[no-untyped-def]
    block, i, start, end, col, perm, x, target, att, edge_attr, edge_weight, gatv2, slope, dot_scale,
    grad_score, grad_target, grad_att, grad_edge_attr, grad_edge_weight, buffer, through,
):  # fmt: skip
    """Row i: gradients of the target side, the attention vector and the edges, from those of the scores."""
    heads, channels = x.shape[1], x.shape[2]
    for h in range(heads):
        for c in range(channels):
            grad_target[i, h, c] = 0.0
    for k in range(start, end):
        e, j = perm[k], col[k]
        with_edge(target[i] if gatv2 else x[j], edge_attr, edge_weight, e, buffer)
        for f in range(grad_edge_attr.shape[1]):
            grad_edge_attr[e, f] = 0.0
        for h in range(heads):
            g = grad_score[k, h]
            if g == 0.0:
                continue
            for c in range(channels):
                if gatv2:
                    t = x[j, h, c] + buffer[h, c]
                    f_slope = g if t > 0 else g * slope
                    grad_att[block, h, c] += f_slope * t
                    through[c] = f_slope * att[h, c]
                    grad_target[i, h, c] += through[c]
                else:
                    through[c] = g * dot_scale * target[i, h, c]
                    grad_target[i, h, c] += g * dot_scale * buffer[h, c]
            for f in range(grad_edge_weight.shape[1]):
                for c in range(channels):
                    grad_edge_weight[block, f, h, c] += edge_attr[e, f] * through[c]
            for f in range(grad_edge_attr.shape[1]):
                total = x.dtype.type(0)
                for c in range(channels):
                    total += edge_weight[f, h, c] * through[c]
                grad_edge_attr[e, f] += total
