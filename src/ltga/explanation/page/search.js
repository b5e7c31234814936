// Find a node by number or name: a combobox that works with arrows, Enter and Escape.

function search(goTo) {
  const input = byId("search"), list = byId("hits"), most = 8;
  let hits = [], active = -1;

  function find(text) {
    const wanted = text.trim().toLowerCase(), found = [];
    if (!wanted) return found;
    const number = /^\d+$/.test(wanted) ? Number(wanted) : -1;
    if (number >= 0 && number < run.nodes) found.push(number);
    for (let node = 0; node < run.nodes && found.length < most; node++) {
      const named = run.node_names ? data.name(node).toLowerCase().startsWith(wanted) : false;
      if (node !== number && (named || (number >= 0 && String(node).startsWith(wanted)))) found.push(node);
    }
    return found;
  }

  function show() {
    list.replaceChildren(...hits.map((node, k) => {
      const item = html("li", { role: "option", id: `hit-${k}`, "aria-selected": k === active }, describeNode(node));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(node); });
      return item;
    }));
    if (!hits.length && input.value.trim()) list.append(html("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, `No such node; they are numbered 0 to ${run.nodes - 1}`));
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
    if (event.key === "Enter" && active >= 0) return take(hits[active]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !hits.length) return undefined;
    event.preventDefault();
    active = (active + step + hits.length) % hits.length;
    return show();
  });
}

function describeNode(node) {
  const name = run.node_names ? `${data.name(node)} (${node})` : `Node ${node}`;
  return `${name}, class ${data.className(data.label(node))}`;
}
