// Puts the page together: choices, slider, address, theme.

function redraw() {
  const inside = byId("graph").contains(document.activeElement);
  drawGraph();
  buildList(attendLearned(view.node));
  update();
  if (inside) drawn.nodes[0].element.focus({ preventScroll: true });
}

function update() {
  const attended = updateGraph();
  describeIndex(attended);
  facts(attended);
  updateList(attended);
  drawCurve(attended);
}

/** The address carries the node, so that Back works and a view can be sent to somebody. */
function goTo(node, scroll = false) {
  byId("tip").hidden = true;
  if (!data.hasRow(node)) return;
  if (location.hash === `#node=${data.number(node)}`) show(node);
  else location.hash = `node=${data.number(node)}`;
  if (scroll) byId("neighbourhood").scrollIntoView();
}

function show(node) {
  view.node = node;
  view.pair = null;
  redraw();
}

function nodeInAddress() {
  const found = /^#node=(\d+)$/.exec(location.hash), node = found ? placeOfNumber.get(Number(found[1])) : undefined;
  return node !== undefined && data.hasRow(node) ? node : null;
}

function pairInAddress() {
  const found = run.links ? /^#pair=(\d+)$/.exec(location.hash) : null, row = found ? run.links.rows[Number(found[1])] : null;
  return row && row.first >= 0 && row.second >= 0 ? Number(found[1]) : null;
}

/** Whether a node has others to attend to than itself. */
function hasNeighbours(node) {
  const start = data.start(node);
  return Array.from({ length: data.degree(node) }, (_, k) => data.source(start + k)).some((source) => source !== node);
}

/** What the page opens with: what the address says, else what there is to see. */
function open() {
  const node = nodeInAddress(), pair = pairInAddress() ?? (run.links && node === null ? run.links.rows.findIndex((row) => row.first >= 0 && row.second >= 0) : -1);
  if (node === null && pair >= 0) return showPair(pair);
  const candidates = [...run.picks.ignored, ...run.picks.wrong, ...nodesThere];
  return show(node ?? candidates.find(hasNeighbours) ?? candidates[0]);
}

const nodesThere = Array.from({ length: run.nodes }, (_, node) => node).filter(data.hasRow);

function controls() {
  const numbers = (count) => Array.from({ length: count }, (_, k) => [String(k), String(k + 1)]);
  choice(byId("layer"), numbers(run.layers), "0", (value) => { view.layer = Number(value); redraw(); });
  choice(byId("head"), [["mean", "mean"], ...numbers(run.heads)], "mean", (value) => { view.head = value === "mean" ? null : Number(value); redraw(); });
  view.hops = window.innerWidth < 700 ? 1 : 2;
  if (byId("hops")) choice(byId("hops"), [["1", "1"], ["2", "2"]], String(view.hops), (value) => { view.hops = Number(value); redraw(); });
  let waiting = false;
  byId("q").addEventListener("input", () => {
    view.q = Number(byId("q").value);
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; if (view.q !== null) update(); });
  });
  byId("learned").addEventListener("click", () => { view.q = null; update(); byId("q").focus(); });
  byId("graph").addEventListener("keydown", walkWithKeys);
  search(goTo);
  for (const kind of ["ignored", "wrong"]) {
    const nodes = run.picks[kind], button = byId(`pick-${kind}`);
    if (!button) continue;
    let turn = 0;
    button.disabled = nodes.length === 0;
    button.addEventListener("click", () => {
      if (nodes[turn % nodes.length] === view.node) turn++;
      goTo(nodes[turn++ % nodes.length]);
    });
  }
  byId("pick-random").addEventListener("click", () => goTo(nodesThere[Math.floor(Math.random() * nodesThere.length)]));
}

function theme() {
  const button = byId("theme"), kinds = { auto: ["◐", "as the system"], light: ["☀\ufe0e", "light"], dark: ["☾\ufe0e", "dark"] };
  const remember = (kind) => { try { localStorage.setItem("ltga-theme", kind); } catch { /* private windows keep nothing */ } };
  const recall = () => { try { return localStorage.getItem("ltga-theme"); } catch { return null; } };
  let kind = Object.hasOwn(kinds, recall()) ? recall() : "auto";
  const apply = () => {
    if (kind === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = kind;
    button.textContent = kinds[kind][0];
    button.setAttribute("aria-label", `Colour theme: ${kinds[kind][1]}`);
    button.title = `Colour theme: ${kinds[kind][1]}`;
  };
  button.addEventListener("click", () => {
    const order = Object.keys(kinds);
    kind = order[(order.indexOf(kind) + 1) % order.length];
    remember(kind);
    apply();
  });
  apply();
}

theme();
tiles();
if (run.reliability) calibration();
if (run.scatter) scatter();
if (run.label_table) labelTable();
if (run.learned) indexOverEpochs();
sparsity();
if (run.pairs) pairs(goTo);
if (run.links) candidatePairs();
if (run.graphs) graphTable();
controls();
open();
window.addEventListener("hashchange", () => {
  const node = nodeInAddress(), pair = pairInAddress();
  if (pair !== null && (!view.pair || view.pair.number !== pair)) showPair(pair);
  else if (node !== null && (node !== view.node || view.pair)) show(node);
});
let shownWidth = window.innerWidth;
window.addEventListener("resize", () => { if (window.innerWidth !== shownWidth) { shownWidth = window.innerWidth; redraw(); } });
