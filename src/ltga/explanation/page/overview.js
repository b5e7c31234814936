// Overview: headline numbers, calibration, the index over the epochs, sparsity by head.

function tiles() {
  const add = (name, value, note) => byId("tiles").append(html("div", {}, html("dt", {}, name), html("dd", {}, value, html("small", {}, note))));
  for (const score of run.scores) add(...score);
  const mean = run.head_table.reduce((sum, row) => sum + row.q, 0) / run.head_table.length;
  const values = run.head_table.map((row) => row.q);
  const range = `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)} over layers and heads`;
  add(`Mean ${run.letter}`, mean.toFixed(2), run.learned ? `learned, ${range}` : run.normalizer === "softmax" ? "softmax, fixed" : "fixed");
  add("Exact zeros", percent(run.zero_share), `of all weights, self-loops aside (${percent(run.zero_share_with_loops)} with them, as in tables of methods)`);
  add("Ignored by everyone", run.unanimous.toLocaleString("en"), `of ${run.edges.toLocaleString("en")} edges, in every layer and head`);
  if (run.planted) {
    const none = run.planted.of_ignored === null;
    add("Ignored and planted", none ? "–" : percent(run.planted.of_ignored), none ? "nothing is ignored" : `of the zeros are on planted noise, ${percent(run.planted.of_edges, 0)} of the edges`);
  }
}

function calibration() {
  const bins = run.reliability.bins, all = bins.reduce((sum, bin) => sum + bin.count, 0);
  byId("calibration-note").textContent = `How often the predicted class is right, by how sure the model is (${all.toLocaleString("en")} ${run.reliability.part} ${run.reliability.unit}).`;
  const unit = [0, 0.25, 0.5, 0.75, 1];
  const words = bins.map((bin) => `confidence ${percent(bin.confidence, 0)}: right ${percent(bin.accuracy, 0)} of ${bin.count}`).join("; ");
  const { picture, px, py, bottom } = frame({
    width: 380, height: 290, x: [0, 1], y: [0, 1], xTicks: unit, yTicks: unit, xLabel: "confidence", yLabel: "accuracy",
    format: (value) => `${100 * value}%`, label: `Reliability diagram. ${words}`,
  });
  for (const bin of bins) {
    const x = px(bin.low) + 1, width = px(bin.high) - px(bin.low) - 2;
    const note = `confidence ${percent(bin.confidence)}, accuracy ${percent(bin.accuracy)}, ${bin.count} ${run.reliability.unit}`;
    picture.append(svg("rect", { class: "bar", x, width, y: py(bin.accuracy), height: bottom - py(bin.accuracy) }, svg("title", {}, note)));
    picture.append(svg("line", { class: "confidence", x1: x, x2: x + width, y1: py(bin.confidence), y2: py(bin.confidence) }));
  }
  picture.append(svg("line", { class: "diagonal", x1: px(0), y1: py(0), x2: px(1), y2: py(1) }));
  byId("calibration").append(picture, html("p", { class: "quiet" }, "Bars: accuracy. Orange lines: mean confidence; a bar that ends below its line is overconfident, above it underconfident."));
}

function indexOverEpochs() {
  const layers = run.trajectory;
  const notes = {
    edge: "One line per head: the mean over edges; the band is one standard deviation among them. Dotted: the epoch that was kept.",
    own: "One line per head. Dotted: the epoch that was kept. 1 is softmax; above 1 weak neighbours are cut off.",
    shared: "One value for the layer. Dotted: the epoch that was kept. 1 is softmax; above 1 weak neighbours are cut off.",
  };
  byId("index-note").textContent = layers[0].std ? notes.edge : layers[0].mean[0].length > 1 ? notes.own : notes.shared;
  const every = layers.flatMap((layer) => layer.mean.flatMap((row, epoch) => row.flatMap((value, h) => {
    const spread = layer.std ? layer.std[epoch][h] : 0;
    return [value - spread, value + spread];
  })));
  const low = Math.min(0.9, ...every), high = Math.max(1.1, ...every), room = 0.05 * (high - low);
  layers.forEach((layer, number) => byId("index-charts").append(indexChart(layer, number, [low - room, high + room])));
}

function indexChart(layer, number, y) {
  const epochs = layer.mean.length, heads = layer.mean[0].length;
  const last = layer.mean[run.best_epoch - 1].map((value) => value.toFixed(2)).join(", ");
  const { picture, px, py, top, bottom, left, right } = frame({
    width: 420, height: 370, x: [1, Math.max(epochs * 1.09, 2)], y, xTicks: ticks(1, Math.max(epochs, 2), 5), yTicks: ticks(...y, 5),
    xLabel: "epoch", yLabel: `Layer ${number + 1}`, label: `Layer ${number + 1}: ${run.letter} by head at the kept epoch: ${last}`,
  });
  picture.append(svg("line", { class: "diagonal", x1: left, x2: right, y1: py(1), y2: py(1) }));
  picture.append(svg("line", { class: "best", x1: px(run.best_epoch), x2: px(run.best_epoch), y1: top + 4, y2: bottom }));
  const ends = [];
  for (let head = 0; head < heads; head++) {
    const colour = `var(--head-${(head % 8) + 1})`;
    const points = layer.mean.map((row, epoch) => [px(epoch + 1), py(row[head])]);
    if (layer.std) {
      const upper = layer.mean.map((row, epoch) => [px(epoch + 1), py(row[head] + layer.std[epoch][head])]);
      const lower = layer.mean.map((row, epoch) => [px(epoch + 1), py(row[head] - layer.std[epoch][head])]).reverse();
      picture.append(svg("path", { class: "band", d: `${path([...upper, ...lower])}Z`, fill: colour }));
    }
    picture.append(svg("path", { class: "line", d: path(points), stroke: colour }, svg("title", {}, `head ${head + 1}`)));
    ends.push({ head, colour, x: px(epochs) + 5, y: points[epochs - 1][1] });
  }
  if (heads > 1) spread(ends, 11, top, bottom).forEach((end) => {
    const text = svg("text", { x: end.x, y: end.y + 4 }, `h${end.head + 1}`);
    text.style.fill = end.colour;
    picture.append(text);
  });
  return picture;
}

/** Labels in their order of height, moved apart until none overlap and all stay inside. */
function spread(labels, distance, top, bottom) {
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  sorted.forEach((label, k) => { if (k) label.y = Math.max(label.y, sorted[k - 1].y + distance); });
  const over = sorted.length ? sorted[sorted.length - 1].y - bottom : 0;
  if (over > 0) sorted.reverse().forEach((label, k) => { label.y = Math.min(label.y, k ? sorted[k - 1].y - distance : bottom); });
  return sorted;
}

function sparsity() {
  const table = byId("sparsity"), heads = Array.from({ length: run.heads }, (_, h) => h);
  table.append(html("thead", {}, html("tr", {}, html("th", { scope: "col" }, ""), ...heads.map((h) => html("th", { scope: "col" }, `head ${h + 1}`)), html("th", { scope: "col" }, "mean"))));
  const kinds = [["zeros", "zero_fraction", percent], ["effective neighbours", "effective_neighbors", (value) => value.toFixed(1)], [`mean ${run.letter}`, "q", (value) => value.toFixed(2)]];
  for (let layer = 1; layer <= run.layers; layer++) {
    const rows = run.head_table.filter((row) => row.layer === layer);
    const body = html("tbody", {}, html("tr", {}, html("th", { class: "group", scope: "rowgroup", colspan: run.heads + 2 }, `Layer ${layer}`)));
    for (const [name, key, format] of kinds) {
      const mean = rows.reduce((sum, row) => sum + row[key], 0) / rows.length;
      body.append(html("tr", {}, html("th", { scope: "row" }, name), ...rows.map((row) => html("td", {}, format(row[key]))), html("td", {}, format(mean))));
    }
    table.append(body);
  }
}
