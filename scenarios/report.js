for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, k) => {
    const cell = row.cells[k], number = cell.dataset.sort;
    return number === undefined ? (heads[k].className ? Infinity : cell.textContent.trim()) : Number(number);
  };
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = (a, b) => typeof a === "number" ? a - b || 0 : a.localeCompare(b);
      body.append(...[...body.rows].sort((a, b) => {
        const [x, y] = [value(a, k), value(b, k)];
        if (x === Infinity || y === Infinity) return (x === Infinity) - (y === Infinity);
        return compare(x, y) * (up ? 1 : -1);
      }));
    };
  });
}
