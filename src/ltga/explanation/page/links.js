// Candidate pairs: how they are scored, and a table that leads to the two neighbourhoods.

function candidatePairs() {
  const { rows, typed, against, edges } = run.links;
  const judged = typed ? "questions (node, relation, ?), both ways" : "held-out edges";
  byId("links-note").textContent = `Of ${edges.toLocaleString("en")} ${judged} of the test part, each compared with ${against}, these are ${typed ? "the ones" : "those"} ranked last and first${typed ? "" : ", and the pairs without an edge that look most like one"}. Common neighbours and degrees are those of the training graph. Press a row to see what both ends attend to.`;
  const heads = ["", "", ...(typed ? ["relation", "answer", "ranked first"] : [""]), "probability", "rank", "common", "degrees"];
  heads[0] = typed ? "node" : "pair";
  const body = html("tbody");
  let group = null;
  rows.forEach((row, k) => {
    if (row.group !== group) body.append(html("tr", {}, html("th", { class: "group", scope: "rowgroup", colspan: heads.length }, typed ? row.group.replace("edge, ", "") : row.group)));
    group = row.group;
    const there = row.first >= 0 && row.second >= 0;
    const button = html("button", { type: "button", class: "link", "aria-label": `Look at ${row.names[0]} and ${row.names[1]}`, ...(there ? {} : { disabled: "" }) }, row.names[0]);
    button.addEventListener("click", () => goToPair(k, true));
    const middle = typed ? [html("td", { class: "kind" }, row.relation), html("td", { class: "kind" }, row.names[1]), html("td", { class: "kind" }, row.best === row.names[1] ? "this one" : row.best)] : [html("td", { class: "kind" }, row.edge ? "edge" : "no edge")];
    const second = typed ? [] : [html("td", { class: "kind" }, row.names[1])];
    const rank = row.rank === null ? "–" : `${figures(row.rank)} of ${row.among}`;
    body.append(html("tr", { "data-pair": k }, html("th", { scope: "row" }, button), ...second, ...middle, ...[row.probability.toFixed(3), rank, String(row.common), row.degrees.join(", ")].map((text) => html("td", {}, text))));
  });
  byId("links-table").append(html("thead", {}, html("tr", {}, ...(typed ? heads.filter((_, k) => k !== 1) : heads).map((head, k) => html("th", { scope: "col", class: k < heads.length - (typed ? 5 : 4) ? "kind" : "" }, head)))), body);
  histogram();
}

function histogram() {
  const { by, bounds, labels, shares } = run.links.histogram, groups = Object.entries(shares), bins = groups[0][1].length;
  const most = Math.max(...groups.flatMap(([, values]) => values), 0.01);
  const { picture, px, py, bottom } = frame({
    width: 420, height: 300, x: [0, bins], y: [0, most], xTicks: labels ? labels.map((_, k) => k + 0.5) : [0, bins / 4, bins / 2, (3 * bins) / 4, bins], yTicks: ticks(0, most, 4), xLabel: by, yLabel: "share",
    format: String, label: `Shares by ${by}: ${groups.map(([name, values]) => `${name} ${values.map((value) => percent(value, 0)).join(", ")}`).join("; ")}`,
    xFormat: (tick) => (labels ? labels[Math.floor(tick)] : String(bounds[Math.round(tick)])), yFormat: (tick) => percent(tick, 0),
  });
  groups.forEach(([name, values], g) => values.forEach((value, k) => {
    const width = (px(1) - px(0) - 2) / groups.length;
    picture.append(svg("rect", { class: g ? "bar second" : "bar", x: px(k) + 1 + g * width, width, y: py(value), height: bottom - py(value) }, svg("title", {}, `${name}: ${percent(value)}`)));
  }));
  const colours = ["--accent", "--other"];
  const key = html("p", { class: "legend" }, ...groups.map(([name], g) => html("span", {}, svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, svg("rect", { x: 4, y: 1, width: 18, height: 10, rx: 2, fill: `var(${colours[g]})` })), name)));
  byId("histogram").append(picture, key);
}

/** The address carries the pair as it carries a node. */
function goToPair(k, scroll = false) {
  location.hash = `pair=${k}`;
  showPair(k);
  if (scroll) byId("neighbourhood").scrollIntoView();
}

function showPair(k) {
  const row = run.links.rows[k], ends = [row.first, row.second];
  const around = ends.map((end) => new Set(data.attend(end, 0, 0, null).edges.map((edge) => data.source(edge)).filter((other) => !ends.includes(other))));
  view.pair = { ...row, number: k, ends, common: new Set([...around[0]].filter((node) => around[1].has(node))) };
  view.node = row.first;
  redraw();
}
