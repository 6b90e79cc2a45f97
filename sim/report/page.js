"use strict";
// Sorts and filters the tables. Without it they are whole, and in the order in which they were written.
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  if (rows.length < 3) continue;

  // "-" and empty cells come last in either direction.
  const valueOf = (row, column) => {
    const text = (row.cells[column]?.textContent ?? "").trim();
    return text === "" || text === "-" ? null : text;
  };
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const keyed = rows.map((row) => [valueOf(row, column), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * compare(a, b);
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });

  if (rows.length < 12) continue;
  const line = document.createElement("div");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("output");
  const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join(" ").toLowerCase());
  line.className = "filter";
  input.type = "search";
  input.placeholder = "words that a row must have";
  label.append("Filter ", input);
  line.append(label, count);
  table.parentElement.before(line);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      shown += !row.hidden;
    });
    count.textContent = words.length > 0 ? `${shown} of ${rows.length}` : "";
  });
}
