// The run as the scripts use it: JSON for what is small, typed arrays for nodes and edges.

function decodeHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function unpack(packed) {
  const text = atob(packed.base64), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  if (packed.type === "float16") return Float32Array.from(new Uint16Array(bytes.buffer), decodeHalf);
  const kinds = { float32: Float32Array, uint32: Uint32Array, int16: Int16Array, uint8: Uint8Array };
  return new kinds[packed.type](bytes.buffer);
}

const run = JSON.parse(document.getElementById("content").textContent);
for (const [name, packed] of Object.entries(run.arrays)) run.arrays[name] = unpack(packed);

const data = {
  edgeCount: run.arrays.source.length,
  ownIndex: run.arrays.q.length > run.layers * run.heads, // every edge has its q

  start: (node) => run.arrays.start[node],
  degree: (node) => run.arrays.start[node + 1] - run.arrays.start[node],
  source: (edge) => run.arrays.source[edge],
  gap: (layer, edge, head) => run.arrays.gap[(layer * data.edgeCount + edge) * run.heads + head],
  index: (layer, edge, head) => run.arrays.q[(layer * (data.ownIndex ? data.edgeCount : 1) + (data.ownIndex ? edge : 0)) * run.heads + head],
  hasRow: (node) => !run.arrays.row || run.arrays.row[node] === 1, // all its incoming edges are in the page
  number: (node) => (run.arrays.number ? run.arrays.number[node] : node),
  planted: (edge) => Boolean(run.arrays.planted && run.arrays.planted[edge]),

  /**
   * What a node does with its incoming edges, in stored order. head: a number, or null for the mean of all
   * heads; q: a number, or null for the model's own.
   * Gives per edge: weight, zeros (heads that ignore it), gap and index (means over the heads looked at);
   * and per head its gaps, weights and shift.
   */
  attend(node, layer, head, q) {
    const start = data.start(node), count = data.degree(node), edges = Array.from({ length: count }, (_, k) => start + k);
    const heads = (head === null ? Array.from({ length: run.heads }, (_, h) => h) : [head]).map((h) => {
      const gaps = edges.map((edge) => data.gap(layer, edge, h));
      const indices = edges.map((edge) => (q === null ? data.index(layer, edge, h) : q));
      return { head: h, gaps, indices, ...normalise(gaps, indices, run.normalizer) };
    });
    const mean = (pick) => edges.map((_, k) => heads.reduce((sum, one) => sum + pick(one)[k], 0) / heads.length);
    return {
      edges, heads,
      weights: mean((one) => one.weights), gaps: mean((one) => one.gaps), indices: mean((one) => one.indices),
      // With q up to 1 no weight is zero: one that is shown so is too small for a number, and not ignored.
      zeros: edges.map((_, k) => heads.filter((one) => one.weights[k] === 0 && one.indices[k] > 1).length),
    };
  },
};

/** 1 / sum of squared weights, averaged over the heads looked at. */
function effectiveNeighbours(attended) {
  const each = attended.heads.map((one) => 1 / one.weights.reduce((sum, weight) => sum + weight * weight, 0));
  return each.reduce((sum, value) => sum + value, 0) / each.length;
}
