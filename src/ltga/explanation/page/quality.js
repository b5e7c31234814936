// How good predictions are that are not one class a node: truth against prediction, and a table of labels.

function scatter() {
  const { name, log, unit, all, truth, predicted, place, quantiles } = run.scatter;
  const shape = log ? (value) => Math.log1p(Math.max(value, 0)) : (value) => value;
  const back = log ? Math.expm1 : (value) => value;
  const every = [...truth, ...predicted].map(shape), low = smallest(every), high = largest(every), room = 0.04 * (high - low || 1);
  const range = [low - room, high + room], marks = log ? roundTicks(...range, 5, shape, back).map(shape) : ticks(...range, 5);
  const format = (value) => figures(back(value));
  const { picture, px, py } = frame({
    width: 420, height: 340, x: range, y: range, xTicks: marks, yTicks: marks, xLabel: `true ${name}${log ? " (logarithmic)" : ""}`, yLabel: `predicted${log ? " (logarithmic)" : ""}`,
    format, label: `Predicted against true ${name} of ${all} ${unit}`, left: roomFor(marks.map(format)),
    beyond: Math.max(20, 6 + 3.5 * format(marks[marks.length - 1] ?? 0).length),
  });
  picture.append(svg("line", { class: "diagonal", x1: px(range[0]), y1: py(range[0]), x2: px(range[1]), y2: py(range[1]) }));
  truth.forEach((value, k) => {
    const there = place[k] >= 0, note = `true ${figures(value)}, predicted ${figures(predicted[k])}`;
    const dot = svg("circle", { class: there ? "point there" : "point", cx: px(shape(value)).toFixed(1), cy: py(shape(predicted[k])).toFixed(1), r: 3.5 }, svg("title", {}, note));
    if (there) dot.addEventListener("click", () => goTo(place[k], true));
    picture.append(dot);
  });
  const some = truth.length < all ? `, of which ${truth.length.toLocaleString("en")} are drawn, the worst among them` : "";
  const [low10, middle, high90] = quantiles.map((value) => `${value > 0 ? "+" : ""}${figures(value)}`);
  byId("scatter-note").textContent = `${all.toLocaleString("en")} ${unit}${some}. On the dotted line a prediction is right. Press a filled point to look at it.`;
  byId("scatter").append(picture, html("p", { class: "quiet" }, `Residuals (predicted minus true): a tenth lie below ${low10}, half below ${middle}, a tenth above ${high90}.`));
}

function labelTable() {
  const { rows, part, unit } = run.label_table, score = (value) => (value === null ? "–" : value.toFixed(3));
  byId("labels-note").textContent = `On ${{ test: "test", val: "validation" }[part]} ${unit}, those whose label is known. F1 at a probability of one half; average precision and ROC AUC where both values occur.`;
  const heads = ["label", "known", "true", "predicted", "F1", "average precision", "ROC AUC"];
  byId("labels-table").append(
    html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head)))),
    html("tbody", {}, ...rows.map((row) => html("tr", {}, html("th", { scope: "row" }, row.label), ...[row.known, row.true, row.predicted].map((value) => html("td", {}, value.toLocaleString("en"))), ...[row.f1, row.average_precision, row.roc_auc].map((value) => html("td", {}, score(value)))))),
  );
}
