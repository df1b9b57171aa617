"use strict";
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[place].dataset.v ?? row.cells[place].textContent;
      const rows = [...body.rows].sort((one, other) => {
        const a = value(one), b = value(other);
        if (a === "" || b === "") return (a === "") - (b === "");
        const x = Number(a), y = Number(b);
        const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
for (const search of document.querySelectorAll("input[type=search]")) {
  const rows = document.getElementById(search.dataset.for).tBodies[0].rows;
  const told = document.getElementById(search.dataset.told);
  search.closest(".tools").hidden = false;
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    let n = 0;
    for (const row of rows) {
      const there = [...row.cells].some((cell) => cell.textContent.toLowerCase().includes(wanted));
      row.classList.toggle("hidden", !there);
      n += there;
    }
    told.textContent = `${n} of ${rows.length} shown`;
  });
}
// What is wider than the screen can be scrolled by keyboard too.
function scrollable() {
  for (const box of document.querySelectorAll("figure, .scroll")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
scrollable();
addEventListener("resize", scrollable);
