// What is known of a node, in words and as one of two shapes, whatever the task.

const placeOfNumber = new Map(Array.from({ length: run.nodes }, (_, node) => [data.number(node), node]));

/** Where the graphs of many begin: a graph's row for each of its nodes. */
const graphOf = new Array(run.graphs ? run.nodes : 0);
if (run.graphs) for (const row of run.graphs.rows) graphOf.fill(row, row.start, row.start + row.nodes);

data.name = (node) => {
  if (run.graphs && !run.node_names) return `${data.known(node)}${node - graphOf[node].start}`;
  if (run.node_names) return run.node_names[node];
  return run.node_ids ? run.node_ids[node] : String(data.number(node));
};

/** The node's name with what tells it from others of that name. */
data.fullName = (node) => {
  if (run.graphs) return `${data.known(node) || run.node_names ? data.name(node) : `Node ${data.name(node)}`} of ${graphOf[node].name === String(graphOf[node].graph) ? "graph " : ""}${graphOf[node].name}`;
  if (run.node_names && run.node_ids && run.node_names[node] !== run.node_ids[node]) return `${run.node_names[node]} (${run.node_ids[node]})`;
  if (run.node_names || run.node_ids) return `${data.name(node)} (node ${data.number(node)})`;
  return `Node ${data.number(node)}`;
};

/** A number with about four digits; whole from a thousand on, as tables print it. */
const figures = (value) => {
  const size = Math.abs(Number(value.toPrecision(9))); // 999.9999999 of an axis is a thousand
  if (size >= 1e15 || (value !== 0 && size < 1e-3)) return value.toExponential(2);
  return size >= 1000 ? value.toLocaleString("en", { maximumFractionDigits: 0 }) : String(Number(value.toPrecision(4)));
};

const labelsOf = (array, node) => array.subarray(node * run.names.length, (node + 1) * run.names.length);

function labelList(array, node, holds) {
  const found = [...labelsOf(array, node)].flatMap((value, k) => (holds(value) ? [run.names[k]] : []));
  return found.join(", ") || "none";
}

/** Class, value, labels or element of a node; nothing where nothing is known beforehand. */
data.known = (node) => {
  const { label } = run.arrays;
  if (run.kind === "classes") return label[node] < 0 ? run.words.unknown : run.names[label[node]];
  if (run.kind === "number") return Number.isNaN(label[node]) ? run.words.unknown : figures(label[node]);
  if (run.kind === "labels") return labelsOf(label, node).every(Number.isNaN) ? run.words.unknown : labelList(label, node, (value) => value === 1);
  if (run.kind === "atoms" && run.names.length) return run.names[label[node]];
  return "";
};

/** Facts of a node beside its neighbourhood: name, text, and whether it is to stand out. */
function predictionFacts(node) {
  const { label, predicted, probability } = run.arrays;
  const part = run.arrays.part ? [["Part", ["in no part of the split", "train", "validation", "test"][run.arrays.part[node]], ""]] : [];
  if (run.kind === "classes") {
    const right = label[node] < 0 || predicted[node] === label[node];
    return [["Class", data.known(node), ""], ["Predicted", `${run.names[predicted[node]]}, ${percent(probability[node])}${right ? "" : " (wrong)"}`, right ? "" : "wrong"], ...part];
  }
  if (run.kind === "number") {
    const gap = predicted[node] - label[node];
    const off = Number.isNaN(gap) ? [] : [["Residual", `${gap > 0 ? "+" : ""}${figures(gap)} (predicted minus true)`, ""]];
    return [[run.words.known, data.known(node), ""], ["Predicted", figures(predicted[node]), ""], ...off, ...part];
  }
  if (run.kind === "labels") {
    const scores = [...labelsOf(predicted, node)].map((value, k) => `${run.names[k]}: ${percent(value, 0)}`);
    const shown = scores.length > 12 ? [...scores.slice(0, 12), `and ${scores.length - 12} more`] : scores;
    return [["Labels", data.known(node), ""], ["Predicted", labelList(predicted, node, (value) => value > 0.5), ""], ["Probabilities", shown.join(", "), ""], ...part];
  }
  if (run.graphs) {
    const row = graphOf[node], sure = row.probability === null ? "" : `, ${percent(row.probability)}`;
    return [["Graph", row.name, ""], ["Target", row.true, ""], ["Predicted", `${row.predicted}${sure}${row.wrong ? " (wrong)" : ""}`, row.wrong ? "wrong" : ""], ["Part", row.part || "in no part of the split", ""], ["Ignored in it", `${row.ignored} of ${row.edges} directed edges by every head, ${percent(row.ignored_share)} of its weights`, ""]];
  }
  return [];
}

/** Which of two shapes a neighbour has: like the node in the middle or not; "unknown" where that cannot be said. */
function kindOf(node) {
  const { label } = run.arrays, own = view.node;
  if (run.kind === "classes") return label[node] < 0 || label[own] < 0 ? "unknown" : label[node] === label[own] ? "same" : "other";
  if (run.kind === "number") {
    const apart = Math.abs(label[node] - label[own]);
    return Number.isNaN(apart) ? "unknown" : apart <= run.spread ? "same" : "other";
  }
  if (run.kind === "labels") {
    const mine = labelsOf(label, own), theirs = labelsOf(label, node);
    if (mine.every(Number.isNaN) || theirs.every(Number.isNaN)) return "unknown";
    return mine.some((value, k) => value === 1 && theirs[k] === 1) ? "same" : "other";
  }
  return view.pair && !view.pair.ends.includes(node) ? (view.pair.common.has(node) ? "same" : "other") : "same";
}
