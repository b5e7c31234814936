// The neighbourhood view. Choosing a node, layer or head redraws; moving q only changes widths and numbers.

const view = { node: 0, layer: 0, head: null, hops: 2, q: null, pair: null };

const attendNow = (node) => data.attend(node, view.layer, view.head, view.q);
const attendLearned = (node) => data.attend(node, view.layer, view.head, null);
const isIgnored = (attended, k) => attended.zeros[k] === attended.heads.length;

/** A circle for the class of the node in the middle, a diamond for any other, so that colour is not needed. */
function shape(kind, radius) {
  if (kind !== "other") return svg("circle", { class: "shape", r: radius });
  const r = radius * 1.15;
  return svg("path", { class: "shape", d: `M0 ${-r}L${r} 0L0 ${r}L${-r} 0Z` });
}

let drawn = { edges: [], rings: [], nodes: [] };

function drawGraph() {
  const picture = byId("graph"), width = Math.max(picture.parentElement.clientWidth, 260), narrow = width < 560;
  const height = Math.round(Math.min(width, run.graphs ? 560 : view.pair ? 540 : 700));
  const plan = run.graphs ? arrangeWhole(view.node, { width, height })
    : view.pair ? arrangePair(view.pair, attendLearned, { width, height, most: narrow ? 7 : 12 })
      : arrange(view.node, attendLearned, { width, height, hops: view.hops, nearMost: narrow ? 18 : 36, farMost: narrow ? 70 : 150, labelRoom: narrow ? 84 : 104 });
  picture.setAttribute("viewBox", `0 0 ${width} ${plan.height || height}`);
  if (byId("hops")) byId("hops").hidden = view.pair !== null;
  picture.setAttribute("class", run.graphs ? (run.graphs.molecules ? "whole molecule" : "whole") : "");
  picture.setAttribute("aria-label", `Neighbourhood of ${describeNode(view.node)}. Arrow keys move between nodes, Enter goes to one.`);
  const far = svg("g"), close = svg("g"), rings = svg("g"), nodes = svg("g");
  drawn = { edges: [], rings: [], nodes: [], plan };
  for (const row of plan.rows) {
    const to = plan.places.get(row.node), start = data.start(row.node);
    for (const k of row.drawn) {
      const from = plan.places.get(data.source(start + k));
      if (!from) continue;
      const element = svg("path", { class: "edge", d: run.graphs ? halfEdge(from, to) : from.hop === 1 && to.hop === 1 ? chord(from, to, plan.places.get(view.node)) : path([[from.x, from.y], [to.x, to.y]]) });
      (to.hop && !run.graphs ? far : close).append(element);
      drawn.edges.push({ element, node: row.node, k, far: to.hop > 0 && !run.graphs, planted: data.planted(start + k) });
    }
  }
  const compact = narrow || plan.first.length > 24;
  const radii = run.graphs ? [plan.radius, plan.radius, 4] : [21, compact ? 8 : 10, 4];
  for (const [node, place] of plan.places) {
    if (!run.graphs && place.hop < 2 && (place.hop === 0 || (view.hops === 2 && !view.pair)) && data.hasRow(node)) {
      const ring = svg("circle", { class: `edge${place.hop ? " far" : ""}`, cx: place.x, cy: place.y, r: radii[place.hop] + (place.hop ? 3 : 6) });
      rings.append(ring);
      drawn.rings.push({ element: ring, node, far: place.hop > 0 });
    }
    nodes.append(nodeMark(node, place, radii[place.hop], plan));
  }
  const extra = view.pair ? [pairArc(plan)] : run.graphs && run.graphs.molecules ? [bondLines(plan)] : [];
  picture.replaceChildren(far, close, rings, ...extra, nodes);
  drawn.nodes[0].element.setAttribute("tabindex", "0");
  legend();
  (run.graphs ? describeWhole : view.pair ? describePair : describeShown)(plan);
}

/** An edge between two nodes of the same ring bends towards the middle. */
function chord(from, to, centre) {
  const bend = (axis) => (0.7 * (from[axis] + to[axis])) / 2 + 0.3 * centre[axis];
  return `M${from.x.toFixed(1)} ${from.y.toFixed(1)}Q${bend("x").toFixed(1)} ${bend("y").toFixed(1)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}`;
}

function nodeMark(node, place, radius, plan) {
  const kind = kindOf(node), focus = run.graphs && node === view.node ? " focus" : "";
  const classes = `${["centre", "near", "far"][place.hop]}${focus}${data.hasRow(node) ? "" : " outside"}`;
  const mark = svg("g", { class: `node ${classes} ${kind}`, transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`, role: "button", tabindex: "-1", "data-node": node });
  mark.append(shape(kind, radius));
  if (place.hop === 2) mark.append(svg("circle", { r: 9, fill: "transparent" })); // a larger thing to hit
  if (run.graphs) mark.append(...wholeLabel(node, radius));
  else if (view.pair) mark.append(pairLabel(node, place, radius, plan));
  else if (place.hop === 1) mark.append(label(node, place, radius, plan));
  else if (place.hop === 0) mark.append(svg("text", { "text-anchor": "middle", y: radius + 26 }, shorten(data.name(node), 16)));
  mark.addEventListener("click", () => press(node));
  mark.addEventListener("pointerenter", () => tip(mark, node));
  mark.addEventListener("focus", () => tip(mark, node));
  for (const gone of ["pointerleave", "blur"]) mark.addEventListener(gone, () => { byId("tip").hidden = true; });
  drawn.nodes.push({ element: mark, node, hop: place.hop });
  return mark;
}

/** A pair stays while its ends are pressed; any other node is gone to. */
function press(node) {
  if (!view.pair || !view.pair.ends.includes(node)) return goTo(node);
  view.node = node;
  return redraw();
}

const LETTER = 6.6; // pixels, about

/** A neighbour's name and class, or as much of it as there is room for between the rings. */
function labelText(node, plan) {
  const room = Math.max(4, Math.floor((view.hops === 2 ? plan.outer - plan.near - 24 : plan.labelRoom - 22) / LETTER));
  const name = data.name(node), known = data.known(node), both = known ? `${shorten(name, 12)} · ${shorten(known, 8)}` : name;
  return both.length <= room ? both : shorten(name, room);
}

/** Level where the ring has room for it, otherwise along the radius; beside the line that may run there. */
function label(node, place, radius, plan) {
  const text = labelText(node, plan), cos = Math.cos(place.angle), sin = Math.sin(place.angle), away = radius + 7;
  const longest = largest(plan.first.map((other) => labelText(other, plan).length)) * LETTER;
  if ((2 * Math.PI * plan.near) / plan.first.length < longest + 8) {
    const turn = (place.angle * 180) / Math.PI, flip = cos < -1e-6;
    return svg("text", { transform: `rotate(${(flip ? turn + 180 : turn).toFixed(1)})`, x: flip ? -away : away, y: -4, "text-anchor": flip ? "end" : "start" }, text);
  }
  const anchor = Math.abs(cos) < 0.35 ? "middle" : cos > 0 ? "start" : "end";
  const lift = anchor === "middle" ? 4 + 6 * sin : -4;
  return svg("text", { x: (away * cos).toFixed(1), y: (away * sin + lift).toFixed(1), "text-anchor": anchor }, text);
}

/** Widths, dashes and words for the current q. */
function updateGraph() {
  const rows = new Map();
  const attended = (node) => { if (!rows.has(node)) rows.set(node, attendNow(node)); return rows.get(node); };
  const style = (element, weight, zero, far, planted, extra = "") => {
    element.setAttribute("class", `edge${far ? " far" : ""}${zero ? " zero" : ""}${planted ? " planted" : ""}${extra}`);
    element.setAttribute("stroke-width", (run.graphs ? wholeWidth(weight, zero) : zero ? 1 : far ? Math.min(0.6 + 9 * weight, 6) : Math.min(1 + 26 * weight, 14)).toFixed(2));
  };
  const words = new Map();
  for (const edge of drawn.edges) {
    const row = attended(edge.node), zero = isIgnored(row, edge.k), from = data.source(row.edges[edge.k]);
    style(edge.element, row.weights[edge.k], zero, edge.far, edge.planted);
    if (!words.has(from)) words.set(from, []);
    words.get(from).push(edgeWords(row, edge));
  }
  for (const ring of drawn.rings) {
    const row = attended(ring.node), k = row.edges.findIndex((edge) => data.source(edge) === ring.node);
    if (k >= 0) style(ring.element, Math.min(row.weights[k], ring.far ? 0.3 : 0.4), isIgnored(row, k), ring.far, false, " loop");
    if (ring.node === view.node && k >= 0) words.set(view.node, [`Attends to itself with weight ${row.weights[k].toFixed(3)}`]);
  }
  for (const one of drawn.nodes) {
    one.words = [describeNode(one.node), ...(words.get(one.node) || []).slice(0, 3), ...(data.hasRow(one.node) ? [] : ["Its own neighbours are not in this page"])];
    one.element.setAttribute("aria-label", one.words.join(". "));
  }
  return attended(view.node);
}

function edgeWords(row, edge) {
  const heads = row.heads.length, zeros = row.zeros[edge.k], to = edge.far || run.graphs || view.pair ? `${data.name(edge.node)} gives it ` : "";
  const ignored = zeros === 0 ? "" : heads === 1 ? ", ignored" : `, ignored by ${zeros} of ${heads} heads`;
  return `${to}${to ? "weight" : "Weight"} ${row.weights[edge.k].toFixed(3)}${ignored}${edge.planted ? ", a planted edge" : ""}`;
}

function tip(mark, node) {
  const box = byId("tip"), at = mark.getBoundingClientRect();
  box.textContent = (drawn.nodes.find((one) => one.node === node).words || []).join("\n");
  box.hidden = false;
  const left = Math.min(Math.max(at.left + at.width / 2 - box.offsetWidth / 2, 8), window.innerWidth - box.offsetWidth - 8);
  box.style.left = `${left}px`;
  box.style.top = `${at.top > box.offsetHeight + 14 ? at.top - box.offsetHeight - 8 : at.bottom + 8}px`;
}

function legend() {
  const sample = (...marks) => svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ...marks);
  const line = (kind, width) => svg("line", { class: kind, x1: 0, x2: 26, y1: 6, y2: 6, "stroke-width": width });
  const shapes = run.graphs || (run.kind === "nothing" && !view.pair) ? [] : [
    [sample(svg("circle", { class: "same", cx: 13, cy: 6, r: 5.5 })), run.words.same],
    [sample(svg("path", { class: "other", d: "M13 0L19 6L13 12L7 6Z" })), run.words.other],
  ];
  const molecule = run.graphs && run.graphs.molecules;
  const items = [
    ...shapes,
    [sample(svg("path", { class: "thick", fill: "var(--edge)", d: "M0 5.5L26 1V11L0 6.5Z" })), "width: weight"],
    [sample(line(molecule ? "hatch" : "dash", molecule ? 8 : 1.5)), "ignored by this model (exactly 0)"],
  ];
  if (run.arrays.planted) items.push([sample(line("planted", 3)), "planted noise"]);
  if (!run.graphs) items.push([sample(svg("circle", { class: "thin", cx: 13, cy: 6, r: 4.5, fill: "none", "stroke-width": 2 })), "ring: self-loop"]);
  byId("legend").replaceChildren(...items.map(([mark, text]) => html("span", {}, mark, text)));
}

function describeShown(plan) {
  const row = plan.rows[0], cut = plan.rows.slice(1).some((other) => other.drawn.length < other.all);
  const parts = ["Messages flow towards the middle; the strongest neighbour is at twelve o'clock, then clockwise."];
  if (row.drawn.length < row.all) parts.push(`Of ${row.all.toLocaleString("en")} neighbours the ${Math.ceil(row.drawn.length / 2)} strongest and the ${Math.floor(row.drawn.length / 2)} weakest are drawn.`);
  if (!row.all) parts.push("This node has no neighbours but itself.");
  if (cut) parts.push("At hop 2 only the strongest and weakest of each neighbour's own neighbours are drawn.");
  byId("shown").textContent = parts.join(" ");
}

/** One tab stop for the whole picture; arrows walk through its nodes. */
function walkWithKeys(event) {
  const marks = drawn.nodes, current = marks.findIndex((one) => one.element === document.activeElement);
  if (current < 0) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    press(marks[current].node);
    return;
  }
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const next = event.key === "Home" ? 0 : event.key === "End" ? marks.length - 1 : step ? (current + step + marks.length) % marks.length : -1;
  if (next < 0) return;
  event.preventDefault();
  marks[current].element.setAttribute("tabindex", "-1");
  marks[next].element.setAttribute("tabindex", "0");
  marks[next].element.focus();
}
