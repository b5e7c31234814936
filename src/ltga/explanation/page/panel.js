// Beside the picture: what is known of the node, the curve of the index, the list of neighbours, q in words.

function facts(attended) {
  const node = view.node, neighbours = attended.edges.length;
  const ignored = attended.edges.filter((_, k) => isIgnored(attended, k)).length;
  const partly = attended.zeros.filter((zeros) => zeros > 0).length - ignored;
  byId("focus-title").textContent = data.fullName(node);
  const common = view.pair ? [["Pair", pairWords(view.pair), ""]] : [];
  const rows = [
    ...common,
    ...predictionFacts(node),
    ["Neighbours", `${neighbours}, itself included`, ""],
    ["Ignored", attended.heads.length > 1 ? `${ignored} by every head, ${partly} by some` : String(ignored), ""],
    ["Effective", `${effectiveNeighbours(attended).toFixed(2)} neighbours (1 / Σ w²)`, ""],
  ];
  byId("focus").replaceChildren(...rows.flatMap(([name, value, kind]) => [html("dt", {}, name), html("dd", { class: kind }, value)]));
}

function pairWords(pair) {
  const rank = pair.rank === null ? "" : `, rank ${figures(pair.rank)} of ${pair.among}`;
  const what = pair.relation ? `${pair.relation}, answer ${pair.names[1]}` : pair.edge ? "a held-out edge" : "no edge";
  return `${what}; probability ${percent(pair.probability)}${rank}; ${pair.common.size} common neighbours`;
}

let listed = [];

/** The table of neighbours, from strong to weak; built once per node, then only its numbers change. */
function buildList(attended) {
  const own = view.node;
  const known = run.words.known && !(run.kind === "nothing" && !view.pair);
  const heads = ["Neighbour", ...(known ? [run.words.known] : []), "Gap", run.letter, "Weight"];
  const tell = (node) => (run.kind === "nothing" ? (view.pair.common.has(node) ? "yes" : "") : data.known(node));
  const body = html("tbody");
  listed = strongestAndWeakest(ranked(attended), 150).map((k) => {
    const source = data.source(attended.edges[k]), button = html("button", { type: "button" }, source === own ? "itself" : data.name(source));
    button.title = data.name(source);
    button.disabled = !data.hasRow(source);
    button.addEventListener("click", () => press(source));
    const index = html("td"), number = html("span"), bar = svg("rect", { height: 4, rx: 2 });
    const meter = svg("svg", { class: "meter", viewBox: "0 0 48 4", "aria-hidden": "true" }, svg("rect", { class: "room", width: 48, height: 4, rx: 2 }), bar);
    const weight = html("td", {}, number, meter);
    const planted = data.planted(attended.edges[k]) ? html("span", { title: "planted noise edge" }, " ✕") : "";
    const row = html("tr", {}, html("th", { scope: "row" }, button, planted), ...(known ? [html("td", { class: "kind", title: tell(source) }, tell(source))] : []), html("td", {}, attended.gaps[k].toFixed(2)), index, weight);
    body.append(row);
    return { k, row, index, weight, number, bar };
  });
  byId("neighbours").replaceChildren(html("thead", {}, html("tr", {}, ...heads.map((name, k) => html("th", { scope: "col", class: known && k === 1 ? "kind" : "" }, name)))), body);
}

function updateList(attended) {
  const most = largest(attended.weights);
  for (const { k, row, index, weight, number, bar } of listed) {
    const zeros = attended.zeros[k], heads = attended.heads.length, zero = zeros === heads;
    row.className = zero ? "zero" : "";
    index.textContent = attended.indices[k].toFixed(2);
    number.textContent = zero ? "0" : attended.weights[k].toFixed(3);
    weight.title = zeros ? `ignored by ${zeros} of ${heads} heads` : "";
    bar.setAttribute("width", ((48 * attended.weights[k]) / most).toFixed(1));
  }
}

/** Weight relative to the strongest neighbour against the logit gap: a dot per neighbour and head on the curve of exp_q. */
function drawCurve(attended) {
  const furthest = largest(attended.heads.map((one) => largest(one.gaps))), reach = Math.min(Math.max(1.2 * furthest, 1.5), 15);
  const { picture, px, py, top, bottom } = frame({
    width: 350, height: 190, x: [-reach, 0], y: [0, 1], xTicks: ticks(-reach, 0, 5), yTicks: [0, 0.5, 1],
    xLabel: "logit below the best neighbour", yLabel: "", label: "",
  });
  const curves = new Map();
  if (view.q !== null || !data.ownIndex) for (const one of attended.heads) curves.set(`${one.indices[0]} ${one.shift}`, one);
  for (const one of curves.values()) {
    const q = one.indices[0], scale = expQ(one.shift, q), points = [];
    for (let step = 0; step <= 120; step++) {
      const x = -reach * (1 - step / 120);
      points.push([px(x), py(expQ(x + one.shift, q) / scale)]);
    }
    const colour = curves.size > 1 ? `var(--head-${(one.head % 8) + 1})` : "var(--accent)";
    picture.append(svg("path", { class: "line", d: path(points), stroke: colour }, svg("title", {}, `${run.letter} = ${q.toFixed(2)}`)));
    const cut = q > 1 ? -1 / (q - 1) - one.shift : -Infinity;
    if (curves.size === 1 && cut > -reach) {
      picture.append(svg("line", { class: "cut", x1: px(cut), x2: px(cut), y1: top, y2: bottom }));
      const roomLeft = px(cut) > 130;
      picture.append(svg("text", { x: px(cut) + (roomLeft ? -6 : 6), y: top + 10, "text-anchor": roomLeft ? "end" : "start" }, "exactly 0 from here"));
    }
  }
  const every = Math.ceil((attended.edges.length * attended.heads.length) / 1000); // of a hub's dots only some
  for (const one of attended.heads) {
    const best = largest(one.weights);
    one.gaps.forEach((gap, k) => {
      if (gap <= reach && k % every === 0) picture.append(svg("circle", { class: one.weights[k] === 0 ? "dot zero" : "dot", cx: px(-gap).toFixed(1), cy: py(one.weights[k] / best).toFixed(1), r: 3 }));
    });
  }
  const target = byId("curve");
  target.setAttribute("viewBox", picture.getAttribute("viewBox"));
  target.setAttribute("aria-label", `Relative weight of each neighbour against how far its logit lies below the best; ${byId("q-words").textContent}`);
  target.replaceChildren(...picture.childNodes);
}

function describeIndex(attended) {
  const slider = byId("q"), letter = run.letter, all = attended.indices;
  const mean = all.reduce((sum, value) => sum + value, 0) / all.length, value = view.q === null ? mean : view.q;
  if (view.q === null) slider.value = String(Math.min(Math.max(mean, 0), 2));
  byId("q-value").textContent = `= ${value.toFixed(2)}`;
  byId("learned").disabled = view.q === null;
  byId("q-words").textContent = view.q === null ? ownWords(attended, mean) : `${letter} = ${value.toFixed(2)} on every edge: ${regime(value)}`;
  slider.setAttribute("aria-valuetext", `${letter} ${value.toFixed(2)}${view.q === null ? ", as in the model" : ""}`);
}

function ownWords(attended, mean) {
  const letter = run.letter, word = run.learned ? "Learned" : "The model's", values = attended.heads.map((one) => one.indices[0]);
  if (data.ownIndex) {
    const each = attended.heads.flatMap((one) => one.indices);
    return `Every edge has its own learned ${letter}: here from ${smallest(each).toFixed(2)} to ${largest(each).toFixed(2)}. Move the slider to give all the same.`;
  }
  if (values.length > 1 && new Set(values).size > 1) return `${word} ${letter} of the heads: ${values.map((value) => value.toFixed(2)).join(", ")}. Move the slider to try another.`;
  return `${word} ${letter} = ${mean.toFixed(2)}: ${regime(mean)}`;
}

function regime(value) {
  if (Math.abs(value - 1) < 0.005) return "softmax. Weights fall exponentially and none is zero.";
  if (value < 1) return "heavy tails. Weights fall slowly, by a power of the gap, and none is zero.";
  if (run.normalizer === "entmax") return "sparse. Neighbours below a threshold that the neighbourhood sets get exactly 0.";
  return `sparse. A neighbour whose logit lies ${(1 / (value - 1)).toFixed(2)} or more below the best gets exactly 0.`;
}
