// Which class pairs get ignored: a heat map whose cells lead to an example.

function pairs(goTo) {
  const { names, edges, ignored, example } = run.pairs, table = byId("pairs-table");
  const options = [["0", "all"], ...Array.from({ length: run.layers }, (_, k) => [String(k + 1), String(k + 1)])];

  function show(view) {
    const values = ignored[view], known = values.flat().filter((value) => value !== null);
    const least = smallest(known), most = largest(known);
    byId("pairs-range").textContent = `Colours go from 0 % to 100 % on every page; ${most > 0 ? `the cells here from ${percent(least)} to ${percent(most)}` : "every cell here is 0 %"}.`;
    table.classList.toggle("upright", names.every((name) => name.length < 5));
    const head = html("tr", {}, html("th", { "aria-label": "attending class, by neighbour's class" }), ...names.map((name) => html("th", { scope: "col", title: name }, html("span", {}, name))));
    const rows = names.map((name, i) => html("tr", {}, html("th", { scope: "row", title: name }, name), ...names.map((_, j) => cell(values[i][j], i, j))));
    table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...rows));
    rank(values);
  }

  function rank(values) {
    const all = names.flatMap((_, i) => names.map((_, j) => ({ i, j, value: values[i][j] }))).filter((pair) => pair.value > 0);
    const items = all.sort((a, b) => b.value - a.value).slice(0, 8).map(({ i, j, value }) => {
      const count = html("span", { class: "quiet" }, ` ${edges[i][j].toLocaleString("en")} edges`);
      return html("li", {}, html("span", {}, `${names[i]} ignores ${names[j]}`, count), html("b", {}, percent(value)));
    });
    byId("pairs-ranking").replaceChildren(...(items.length ? items : [html("li", {}, "No weight is exactly 0.")]));
  }

  function cell(value, i, j) {
    if (!edges[i][j]) return html("td", { class: "none", "aria-label": "no such edge" });
    const words = `${names[i]} attending to ${names[j]}: ${percent(value)} ignored, ${edges[i][j].toLocaleString("en")} edges`;
    const button = html("button", { type: "button", "aria-label": words, title: words }, value >= 0.0005 ? (100 * value).toFixed(value < 0.0995 ? 1 : 0) : "0");
    button.disabled = example[i][j] < 0; // not in the sample
    button.addEventListener("click", () => goTo(example[i][j], true));
    const strength = value, td = html("td", { class: strength > 0.8 ? "strong" : strength > 0.55 ? "middle" : "" }, button);
    td.style.backgroundColor = `color-mix(in srgb, var(--accent) ${(100 * strength).toFixed(0)}%, var(--grid))`;
    return td;
  }

  choice(byId("pairs-layer"), options, "0", (value) => show(Number(value)));
  show(0);
}
