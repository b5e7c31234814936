// Two nodes that may have an edge: common neighbours between them, the other neighbours on their outer sides.

/** Places and rows of a pair, in the form of `arrange`. */
function arrangePair(pair, attend, { width, height, most }) {
  const places = new Map(), rows = [], wide = width > 560, reach = 0.17 * width;
  pair.ends.forEach((end, side) => places.set(end, { x: width * (side ? 0.69 : 0.31), y: height / 2, angle: 0, hop: 0, side: side ? 1 : -1 }));
  const drawnCommon = new Set();
  pair.ends.forEach((end, side) => {
    const attended = attend(end), start = data.start(end);
    const order = ranked(attended).filter((k) => data.source(start + k) !== end && !pair.ends.includes(data.source(start + k)));
    const own = order.filter((k) => !pair.common.has(data.source(start + k))), shared = order.filter((k) => pair.common.has(data.source(start + k)));
    const shownOwn = strongestAndWeakest(own, most), first = [...new Set(shownOwn.map((k) => data.source(start + k)))];
    if (!side) strongestAndWeakest(shared, most).forEach((k) => drawnCommon.add(data.source(start + k)));
    first.forEach((other, k) => {
      // At even heights, so that names do not run into one another; the strongest at the top.
      const sign = side ? 1 : -1, step = Math.min((height - 60) / Math.max(first.length, 1), 40), down = (k - (first.length - 1) / 2) * step;
      const bow = Math.sqrt(Math.max(1 - (down / (0.62 * height)) ** 2, 0.1)), middle = places.get(end);
      places.set(other, { x: middle.x + sign * reach * bow, y: middle.y + down, angle: 0, hop: 1, side: sign });
    });
    rows.push({ node: end, drawn: [...shownOwn, ...shared.filter((k) => drawnCommon.has(data.source(start + k)))], all: order.length });
  });
  [...drawnCommon].forEach((node, k, all) => {
    const step = Math.min((height - 90) / Math.max(all.length - 1, 1), 46);
    places.set(node, { x: width / 2, y: height / 2 + (k - (all.length - 1) / 2) * step, angle: Math.PI / 2, hop: 1, side: 0 });
  });
  return { places, rows, wide, width, first: [...places.keys()].slice(2), pair };
}

/** The link in question, drawn above both ends with what the model says of it. */
function pairArc(plan) {
  const [from, to] = plan.pair.ends.map((end) => plan.places.get(end)), top = Math.min(from.y, to.y);
  const lift = 0.36 * (to.x - from.x) + 60, x = (from.x + to.x) / 2, label = plan.pair.relation || (plan.pair.edge ? "held-out edge" : "no edge");
  const text = svg("text", { class: "title", x, y: top - lift / 2 - 34, "text-anchor": "middle" }, `${shorten(label, 34)}: ${percent(plan.pair.probability)}`);
  return svg("g", { class: "question" }, svg("path", { d: `M${from.x} ${from.y - 24}Q${x} ${top - lift - 24} ${to.x} ${to.y - 24}` }), text);
}

function pairLabel(node, place, radius, plan) {
  const away = radius + 6, room = place.side < 0 ? place.x - away : plan.width - place.x - away;
  const text = shorten(data.name(node), place.side ? Math.max(Math.floor(room / LETTER), 3) : plan.wide ? 20 : 9);
  if (place.hop === 0) return svg("text", { "text-anchor": "middle", y: radius + 26 }, shorten(data.name(node), plan.wide ? 22 : 12));
  if (place.side === 0) return svg("text", { "text-anchor": "middle", y: -away + 1 }, text);
  return svg("text", { x: place.side * away, y: 4, "text-anchor": place.side > 0 ? "start" : "end" }, text);
}

function describePair(plan) {
  const { pair } = plan, [first, second] = pair.ends.map((end) => data.name(end)), counted = pair.common.size;
  const parts = [`${first} on the left, ${second} on the right, the ${counted} neighbour${counted === 1 ? "" : "s"} they have in common between them. Messages flow from neighbours to the two.`];
  plan.rows.forEach((row) => {
    if (row.drawn.length < row.all) parts.push(`Of ${row.all} edges of ${data.name(row.node)} ${row.drawn.length} are drawn, the strongest and the weakest.`);
  });
  parts.push("Press one of the two to see its list, any other node to go there.");
  byId("shown").textContent = parts.join(" ");
}
