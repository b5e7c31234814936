// One graph of many, drawn whole at the places the page stores: a molecule as chemists draw it.

/** Places and rows of the graph that `node` is in, in the form of `arrange`. */
function arrangeWhole(node, { width, height }) {
  const { start, nodes } = graphOf[node], { x, y } = run.arrays, every = Array.from({ length: nodes }, (_, k) => start + k);
  const spanX = 2 * largest(every.map((one) => Math.abs(x[one]))), spanY = 2 * largest(every.map((one) => Math.abs(y[one]))), room = 26;
  const unit = Math.min((width - 2 * room) / Math.max(spanX, 0.5), (height - 2 * room) / Math.max(spanY, 0.5), 64);
  const used = Math.max(Math.min(height, spanY * unit + 2 * room), 120);
  const places = new Map(every.map((one) => [one, { x: width / 2 + unit * x[one], y: used / 2 + unit * y[one], hop: 1, angle: 0 }]));
  const rows = every.map((one) => {
    const drawn = data.attend(one, 0, 0, null).edges.map((_, k) => k).filter((k) => data.source(data.start(one) + k) !== one);
    return { node: one, drawn, all: drawn.length };
  });
  return { places, rows, unit, height: used, radius: Math.max(Math.min(0.24 * unit, 13), 2.5), first: every };
}

/** From the middle of an edge to the node that attends: the half of an edge next to a node is what this node does with it. */
function halfEdge(from, to) {
  return path([[(from.x + to.x) / 2, (from.y + to.y) / 2], [to.x, to.y]]);
}

/** The bonds of a molecule in ink, over the weights: one line, two, three, or one beside a dashed one. */
function bondLines(plan) {
  const group = svg("g", { class: "bonds" }), seen = new Map((run.bonds || []).map(([a, b, order]) => [`${a} ${b}`, order]));
  for (const row of plan.rows) for (const k of row.drawn) {
    const other = data.source(data.start(row.node) + k);
    if (other > row.node && data.attend(other, 0, 0, null).edges.some((edge) => data.source(edge) === row.node)) continue; // drawn from its other end
    const from = plan.places.get(row.node), to = plan.places.get(other), order = seen.get(`${Math.min(row.node, other)} ${Math.max(row.node, other)}`) || 1;
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1, nx = -(to.y - from.y) / length, ny = (to.x - from.x) / length;
    const shifts = { 1: [0], 2: [-2.2, 2.2], 3: [-3.4, 0, 3.4], 4: [-2.2, 2.2] }[order];
    shifts.forEach((shift, line) => group.append(svg("line", { class: order === 4 && line ? "bond dashed" : "bond", x1: from.x + shift * nx, y1: from.y + shift * ny, x2: to.x + shift * nx, y2: to.y + shift * ny })));
  }
  return group;
}

function describeWhole(plan) {
  const row = graphOf[view.node], ways = run.graphs.as_molecules ? "Drawn as a molecule, hydrogens left out unless they are nodes." : run.graphs.molecules ? "Drawn by springs; with rdkit (pip install 'ltga[molecules]') it would be drawn as a molecule." : row.nodes > 300 ? "Drawn on a circle." : "Drawn by springs: where a node stands says little.";
  byId("shown").textContent = `${ways} The half of an edge next to a node shows what that node does with the other end: width is weight, ${run.graphs.molecules ? "hatched" : "dashed"} is exactly 0. The node with the dark ring is the one in the list; press another to change it.`;
}

const wholeWidth = (weight, zero) => (zero ? (run.graphs.molecules ? 9 : 1.2) : Math.min(1 + (run.graphs.molecules ? 20 : 9) * weight, 16));

/** The element in the node, or its number beside it where there is room. */
function wholeLabel(node, radius) {
  const text = data.known(node) || (radius > 7 ? String(node - graphOf[node].start) : "");
  return text && radius > 5 ? [svg("text", { "text-anchor": "middle", y: 4 }, text)] : [];
}
