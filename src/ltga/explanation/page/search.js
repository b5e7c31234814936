// Find a node by number, id or name, or a graph: a combobox that works with arrows, Enter and Escape.

/** What can be found: its text, the words it begins with, and the node to go to. */
function findable() {
  if (run.graphs) return run.graphs.rows.map((row) => ({ node: row.start, number: row.graph, words: [row.name], text: `${row.name}${row.name === String(row.graph) ? "" : ` (graph ${row.graph})`}, target ${row.true}` }));
  return Array.from({ length: run.nodes }, (_, node) => node).filter(data.hasRow).map((node) => ({ node, number: data.number(node), words: [run.node_ids, run.node_names].flatMap((names) => (names ? [names[node]] : [])), text: null }));
}

function search(goTo) {
  const input = byId("search"), list = byId("hits"), most = 8, items = findable();
  let hits = [], active = -1;

  function find(text) {
    const wanted = text.trim().toLowerCase(), found = [];
    if (!wanted) return found;
    const numeric = /^\d+$/.test(wanted);
    const exact = items.filter((item) => item.words.some((word) => word.toLowerCase() === wanted) || (numeric && item.number === Number(wanted)));
    found.push(...exact.slice(0, most));
    for (const item of items) {
      if (found.length >= most) break;
      const named = item.words.some((word) => word.toLowerCase().startsWith(wanted));
      if (!exact.includes(item) && (named || (numeric && String(item.number).startsWith(wanted)))) found.push(item);
    }
    return found;
  }

  function show() {
    list.replaceChildren(...hits.map((hit, k) => {
      const item = html("li", { role: "option", id: `hit-${k}`, "aria-selected": k === active }, hit.text ?? describeNode(hit.node));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(hit.node); });
      return item;
    }));
    if (!hits.length && input.value.trim()) list.append(html("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, nothingFound()));
    list.hidden = !list.children.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (active >= 0) input.setAttribute("aria-activedescendant", `hit-${active}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function close() { hits = []; active = -1; list.replaceChildren(); list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); }
  function take(node) { input.value = ""; close(); goTo(node); }

  input.addEventListener("input", () => { hits = find(input.value); active = hits.length ? 0 : -1; show(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    if (event.key === "Enter" && active >= 0) return take(hits[active].node);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !hits.length) return undefined;
    event.preventDefault();
    active = (active + step + hits.length) % hits.length;
    return show();
  });
}

function nothingFound() {
  if (run.graphs) return run.sample ? "No such graph, or not in this page" : "No such graph";
  const numbers = `they are numbered 0 to ${run.all_nodes - 1}`;
  return run.sample ? `Not in this page, which has a sample (${numbers}); ltga explain RUN --node shows any` : `No such node; ${numbers}`;
}

function describeNode(node) {
  if (run.graphs) return data.fullName(node);
  const name = run.node_names || run.node_ids ? data.fullName(node).replace("(node ", "(") : data.fullName(node);
  return data.known(node) ? `${name}, ${run.words.known.toLowerCase()} ${data.known(node)}` : name;
}
