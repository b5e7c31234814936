// Where the nodes of a neighbourhood stand: the node in the middle, hop 1 and hop 2 on rings around it.

/** At most `most` of the candidates, given from strong to weak: the strongest half and the weakest half. */
function strongestAndWeakest(candidates, most) {
  if (candidates.length <= most) return candidates;
  const head = Math.ceil(most / 2);
  return [...candidates.slice(0, head), ...candidates.slice(candidates.length - (most - head))];
}

/** Positions in a row from strong to weak: by weight, and among those that are ignored by logit. */
function ranked(attended) {
  const { weights, gaps } = attended;
  return attended.edges.map((_, k) => k).sort((a, b) => weights[b] - weights[a] || gaps[a] - gaps[b] || a - b);
}

/**
 * What is drawn around `node`: `places` (node -> x, y, angle, hop) and `rows`, per attending node the
 * positions in its row that are drawn. The strongest neighbour stands at twelve o'clock, then clockwise.
 */
function arrange(node, attend, { width, height, hops, nearMost, farMost, labelRoom }) {
  const centre = { x: width / 2, y: height / 2 }, half = Math.min(width, height) / 2;
  const outer = half - 14, near = hops === 2 ? 0.5 * outer : half - labelRoom;
  const places = new Map([[node, { ...centre, angle: 0, hop: 0 }]]);
  const at = (radius, angle, hop) => ({ x: centre.x + radius * Math.cos(angle), y: centre.y + radius * Math.sin(angle), angle, hop });
  const without = (row, begin, ...nodes) => ranked(row).filter((k) => !nodes.includes(data.source(begin + k)));
  const start = data.start(node), order = without(attend(node), start, node), shown = strongestAndWeakest(order, nearMost);
  const first = [...new Set(shown.map((k) => data.source(start + k)))];
  first.forEach((other, k) => places.set(other, at(near, (2 * Math.PI * k) / first.length - Math.PI / 2, 1)));
  const rows = [{ node, drawn: shown, all: order.length }];
  if (hops === 2 && first.length) {
    const each = Math.max(2, Math.min(8, Math.floor(farMost / first.length))), sector = (2 * Math.PI) / first.length;
    for (const other of first) {
      const begin = data.start(other), all = without(attend(other), begin, other, node);
      const drawn = strongestAndWeakest(all, each);
      const fresh = [...new Set(drawn.map((k) => data.source(begin + k)))].filter((far) => !places.has(far));
      const step = Math.min(sector / Math.max(fresh.length, 1), 0.2), middle = places.get(other).angle;
      fresh.forEach((far, k) => places.set(far, at(outer, middle + (k - (fresh.length - 1) / 2) * step, 2)));
      rows.push({ node: other, drawn, all: all.length });
    }
  }
  return { places, rows, near, outer, first, labelRoom };
}
