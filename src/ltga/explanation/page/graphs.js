// The list of graphs that the page carries; a row leads to the graph's picture.

function graphTable() {
  const { rows, kind } = run.graphs, orders = { off: (row) => -(row.off ?? -1), ignored: (row) => -row.ignored_share, number: (row) => row.graph };
  const heads = ["graph", "part", "target", "predicted", ...(kind === "number" ? ["off by"] : []), "nodes", "edges", "ignored by all", "zero weights"];
  const table = byId("graphs-table");

  function fill(order) {
    const sorted = [...rows].sort((a, b) => orders[order](a) - orders[order](b));
    table.replaceChildren(
      html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col", class: ["part", "target", "predicted"].includes(head) ? "kind" : "" }, head)))),
      html("tbody", {}, ...sorted.map((row) => {
        const button = html("button", { type: "button", class: "link", title: row.name }, row.name);
        button.addEventListener("click", () => goTo(row.start, true));
        const off = kind === "number" ? [html("td", {}, row.off === null ? "–" : figures(row.off))] : [];
        return html("tr", {}, html("th", { scope: "row" }, button), html("td", { class: "kind" }, row.part), html("td", { class: "kind" }, row.true), html("td", { class: `kind${row.wrong ? " wrong" : ""}` }, row.predicted), ...off, ...[row.nodes, row.edges, row.ignored].map((value) => html("td", {}, value.toLocaleString("en"))), html("td", {}, percent(row.ignored_share)));
      })),
    );
  }

  choice(byId("graphs-order"), [["off", "furthest off"], ["ignored", "most ignored"], ["number", "number"]], "off", fill);
  fill("off");
}
