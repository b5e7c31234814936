// Small helpers to build HTML and SVG; text only ever enters as text.

const byId = (id) => document.getElementById(id);

function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A share in percent; what is nearly all or nearly nothing is not rounded to all or nothing. */
function percent(share, digits = 1) {
  if (share === null) return "–";
  const text = (100 * share).toFixed(digits), least = 10 ** -digits;
  if (share < 1 && Number(text) === 100) return `> ${(100 - least).toFixed(digits)} %`;
  if (share > 0 && Number(text) === 0) return `< ${least.toFixed(digits)} %`;
  return `${text} %`;
}
const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** A row of buttons of which one is on: real radio buttons, so that arrow keys work. */
function choice(fieldset, options, chosen, onChange) {
  const row = html("div");
  for (const [value, label] of options) {
    const input = html("input", { type: "radio", name: fieldset.id, value });
    input.checked = value === chosen;
    input.addEventListener("change", () => onChange(value));
    row.append(html("label", {}, input, html("span", {}, label)));
  }
  fieldset.append(row);
}

/** A plot's frame: axes with ticks, and scales from data to pixels. */
function frame({ width, height, x, y, xTicks, yTicks, xLabel, yLabel, format = String, xFormat = format, yFormat = format, label, left = 40, beyond = 20 }) {
  const right = width - beyond, top = 26, bottom = height - 36;
  const px = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (right - left);
  const py = (value) => bottom - ((value - y[0]) / (y[1] - y[0])) * (bottom - top);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const tick of yTicks) {
    picture.append(svg("line", { class: "grid", x1: left, x2: right, y1: py(tick), y2: py(tick) }));
    picture.append(svg("text", { x: left - 6, y: py(tick) + 4, "text-anchor": "end" }, yFormat(tick)));
  }
  for (const tick of xTicks) picture.append(svg("text", { x: px(tick), y: bottom + 15, "text-anchor": "middle" }, xFormat(tick)));
  picture.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  picture.append(svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, xLabel));
  if (yLabel) picture.append(svg("text", { class: "title", x: 4, y: 12 }, yLabel));
  return { picture, px, py, left, right, top, bottom };
}

/** About `count` round numbers between two. */
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(6)));
  return found;
}

/**
 * Round numbers for an axis on which `shape` of a value is drawn: 1, 2 and 5 times powers of ten if the axis is bent,
 * none of them too near to the one before.
 */
function roundTicks(low, high, count, shape, back) {
  const straight = ticks(back(low), back(high), count);
  const powers = Array.from({ length: 28 }, (_, k) => 10 ** (k - 9));
  const choices = [[0, ...powers], [0, ...powers.flatMap((power) => [power, 2 * power, 5 * power])], straight];
  const apart = (values) => {
    const kept = [];
    for (const value of values) {
      const at = shape(value), last = kept.length ? shape(kept[kept.length - 1]) : -Infinity;
      if (at >= low && at <= high && at - last >= (high - low) / (count + 3)) kept.push(value);
    }
    return kept;
  };
  const found = choices.map(apart);
  return found.find((values) => values.length >= 4) ?? found.reduce((best, values) => (values.length > best.length ? values : best));
}

/** The room that labels need left of an axis. */
const roomFor = (labels) => Math.max(40, 14 + 7 * Math.max(0, ...labels.map((label) => label.length)));

const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
