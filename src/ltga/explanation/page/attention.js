"use strict";
// The maths of the index: the same formulas as ltga.functional, over the gaps of one neighbourhood.

// Math.max(...values) takes a hub's neighbours as arguments and fails where there are too many.
const largest = (values) => values.reduce((best, value) => Math.max(best, value), -Infinity);
const smallest = (values) => values.reduce((best, value) => Math.min(best, value), Infinity);

/** exp_q(x) = [1 + (q-1) x]_+^(1/(q-1)) by one formula for every q, the limit q = 1 included. */
function expQ(x, q) {
  const u = (q - 1) * x;
  if (1 + u <= 0) return 0;
  return Math.exp(Math.abs(u) < 1e-8 ? x * (1 - u / 2) : x * (Math.log1p(u) / u));
}

/** The inverse of expQ, for y > 0. */
function logQ(y, q) {
  const t = (q - 1) * Math.log(y);
  return Math.abs(t) < 1e-8 ? Math.log(y) * (1 + t / 2) : Math.expm1(t) / (q - 1);
}

/** How far entmax moves all logits down before the exponential; the q-softmax divides by the sum instead. */
function entmaxShift(gaps, alphas) {
  const sum = (shift) => gaps.reduce((total, gap, k) => total + expQ(shift - gap, alphas[k]), 0);
  let low = smallest(alphas.map((alpha) => logQ(1 / gaps.length, alpha))), high = 0;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (sum(middle) > 1) high = middle; else low = middle;
  }
  return low;
}

/**
 * Weights of one neighbourhood and head. gaps: best logit minus each logit; indices: q (or alpha) of each.
 * Rounded to single precision, in which the model computes: what is zero there is zero here.
 */
function normalise(gaps, indices, kind) {
  const shift = kind === "entmax" && gaps.length ? entmaxShift(gaps, indices) : 0;
  const parts = gaps.map((gap, k) => expQ(shift - gap, indices[k]));
  const total = parts.reduce((sum, part) => sum + part, 0);
  return { weights: parts.map((part) => Math.fround(part / total)), shift };
}
