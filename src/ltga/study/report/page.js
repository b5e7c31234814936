"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

function keyOf(row, column) {
  const text = row.cells[column].dataset.sort;
  const number = text === "" ? NaN : Number(text);
  return { text, number, none: text === "" || text === "–" };
}

function sortBy(head) {
  const table = head.closest("table");
  const column = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: keyOf(row, column) }));
  rows.sort((a, b) => {
    if (a.key.none || b.key.none) return a.key.none - b.key.none; // what is missing stays at the end
    const bothNumbers = !Number.isNaN(a.key.number) && !Number.isNaN(b.key.number);
    const order = bothNumbers ? a.key.number - b.key.number : a.key.text.localeCompare(b.key.text, "en", { numeric: true });
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
}

function filter(block) {
  const words = block.querySelector("input[type=search]").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...block.querySelectorAll("tbody tr")];
  rows.forEach((row) => {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
    row.classList.toggle("filtered", !words.every((word) => text.includes(word)));
  });
  const shown = rows.filter((row) => !row.classList.contains("filtered")).length;
  block.querySelector(".shown").textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
}

function showRuns(button) {
  const dialog = document.getElementById("behind");
  const runs = data.cells[Number(button.dataset.behind)];
  const row = button.closest("tr");
  const head = button.closest("table").tHead.rows[0].cells[button.closest("td, th").cellIndex];
  const label = (cell) => (cell.querySelector("button") || cell.firstChild).textContent.trim();
  document.getElementById("behind-title").textContent = `${label(row.cells[0])}, ${label(head)}: ${button.textContent}`;
  document.getElementById("behind-summary").textContent = `${runs.length} run${runs.length === 1 ? "" : "s"}`;
  const body = dialog.querySelector("tbody");
  body.replaceChildren(...runs.map(([number, value]) => {
    const [id, dataset, method, init, seed, source] = data.runs[number];
    const line = document.createElement("tr");
    for (const text of [seed, value.toFixed(3), dataset, method, init]) line.insertCell().textContent = text;
    const code = document.createElement("code");
    code.textContent = id;
    line.insertCell().append(code, source === "" ? "" : ` imported from ${source}`);
    return line;
  }));
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.classList.contains("runs")) showRuns(button);
  else if (button.closest("thead")) sortBy(button.closest("th"));
});
document.querySelectorAll(".table").forEach((block) => {
  block.querySelector("input[type=search]").addEventListener("input", () => filter(block));
});
document.getElementById("compact").addEventListener("change", (event) => {
  document.body.classList.toggle("compact", event.target.checked);
});
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
