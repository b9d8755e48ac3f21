document.documentElement.className = "script";

// Tables sort when a header is clicked; the page is whole without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, k) => {
    const cell = row.cells[k], number = cell.dataset.sort;
    return number === undefined ? (heads[k].className ? Infinity : cell.textContent.trim()) : Number(number);
  };
  const compare = (a, b) => typeof a === "number" ? a - b || 0 : a.localeCompare(b, "en", { numeric: true });
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
      body.append(...[...body.rows].sort((a, b) => {
        const [x, y] = [value(a, k), value(b, k)];
        if (x === Infinity || y === Infinity) return (x === Infinity) - (y === Infinity);
        return compare(x, y) * (up ? 1 : -1);
      }));
    };
  });
}

// A mapping on a box can be turned: dragged, or by arrow keys. Colours are the figure's.
const light = c => [1, 3, 5].reduce((sum, k, i) => sum + parseInt(c.slice(k, k + 2), 16) * [0.3, 0.59, 0.11][i], 0) > 128;
const ways = ["#c3cad0", "#56b4e9", "#e69f00", "#d55e00"];
function turn(view) {
  const canvas = document.createElement("canvas"), [left, top, wide, high] = view.box, dots = 2;
  Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${wide}px`, height: `${high}px` });
  canvas.width = wide * dots;
  canvas.height = high * dots;
  canvas.className = "turn";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The mapping in three dimensions; arrow keys turn it");
  const middle = [0, 1, 2].map(k => (Math.max(...view.at.map(p => p[k]))) / 2);
  const reach = Math.hypot(...middle) || 1, unit = (Math.min(wide, high) / 2 - 14) / reach;
  const radius = Math.max(3, Math.min(11, unit * 0.3));
  let [around, above] = [0.6, 0.42], place = [];
  const draw = () => {
    const g = canvas.getContext("2d");
    const [ca, sa, ct, st] = [Math.cos(around), Math.sin(around), Math.cos(above), Math.sin(above)];
    place = view.at.map(p => {
      const [x, y, z] = p.map((c, k) => c - middle[k]);
      const [right, away] = [x * ca - y * sa, x * sa + y * ca];
      return { x: wide / 2 + unit * right, y: high / 2 - unit * (z * ct + away * st), far: away * ct - z * st };
    });
    g.setTransform(dots, 0, 0, dots, 0, 0);
    g.fillStyle = "#fff";
    g.fillRect(0, 0, wide, high);
    const things = view.pairs.map(([a, b, hops]) => ({ far: (place[a].far + place[b].far) / 2, line: [place[a], place[b], hops], bent: Math.hypot(...view.at[a].map((c, k) => c - view.at[b][k])) > 1.5 }));
    place.forEach((p, node) => things.push({ far: p.far - 0.01, node, p }));
    for (const { line, bent, node, p, far } of things.sort((a, b) => b.far - a.far)) {
      g.globalAlpha = 0.5 + 0.5 * Math.min(1, Math.max(0, 0.5 - far / (2 * reach)));
      if (line) {
        const [a, b] = line, long = Math.hypot(b.x - a.x, b.y - a.y);
        if (long < 2 * radius) continue;
        const [dx, dy] = [(b.x - a.x) * radius / long, (b.y - a.y) * radius / long];
        g.strokeStyle = ways[Math.min(line[2], 4) - 1];
        g.lineWidth = line[2] > 1 ? 1.5 : 2.2;
        g.beginPath();
        g.moveTo(a.x + dx, a.y + dy);
        const bulge = bent ? 0.3 * long / radius : 0; // past the nodes between
        g.quadraticCurveTo((a.x + b.x) / 2 + dy * bulge, (a.y + b.y) / 2 - dx * bulge, b.x - dx, b.y - dy);
        g.stroke();
        continue;
      }
      const rank = view.rank[node], colour = view.colour[node];
      g.globalAlpha = 1;
      g.beginPath();
      g.arc(p.x, p.y, radius, 0, 7);
      g.fillStyle = colour;
      g.fill();
      g.lineWidth = 1;
      g.strokeStyle = rank < 0 ? "#8a949c" : "#fff";
      g.stroke();
      if (rank >= 0 && radius >= 8) {
        g.fillStyle = light(colour) ? "#22282d" : "#fff";
        g.font = "11px system-ui, sans-serif";
        g.textAlign = "center";
        g.textBaseline = "middle";
        g.fillText(rank, p.x, p.y + 0.5);
      }
    }
  };
  const move = (right, up) => {
    around += right;
    above = Math.min(1.57, Math.max(-1.57, above + up));
    draw();
  };
  canvas.onpointerdown = event => canvas.setPointerCapture(event.pointerId);
  canvas.onpointermove = event => {
    if (event.buttons) return move(-event.movementX / 90, event.movementY / 90);
    const near = place.map(p => Math.hypot(p.x - event.offsetX, p.y - event.offsetY) <= radius ? p.far : Infinity);
    const node = near.indexOf(Math.min(...near));
    canvas.title = near[node] < Infinity ? view.says[node] : "";
  };
  canvas.onkeydown = event => {
    const step = { ArrowLeft: [0.15, 0], ArrowRight: [-0.15, 0], ArrowUp: [0, 0.15], ArrowDown: [0, -0.15] }[event.key];
    if (step) { move(...step); event.preventDefault(); }
  };
  draw();
  return canvas;
}
// Only the drawing turns: its title, legend and bars stay.
for (const picture of document.querySelectorAll("[data-turn]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Turn it";
  let canvas = null;
  button.onclick = () => {
    canvas ??= turn(JSON.parse(picture.dataset.turn));
    const turning = !canvas.isConnected;
    if (turning) picture.append(canvas); else canvas.remove();
    button.textContent = turning ? "The drawing again" : "Turn it";
  };
  picture.parentNode.append(button);
}

// Browsers show the titles of marks to a mouse; a tap or a click writes them below the figure.
document.addEventListener("click", event => {
  const title = event.target.closest?.(".tips > path")?.querySelector("title");
  if (title) event.target.closest("figure").querySelector("output").textContent = title.textContent;
});

// Tables that are wider than the window say so.
const wide = () => {
  for (const box of document.querySelectorAll(".scroll"))
    box.classList.toggle("scrolls", box.scrollWidth > box.clientWidth + 1);
};
addEventListener("resize", wide);
wide();

// One click copies a command.
for (const command of document.querySelectorAll("pre.copy")) {
  const button = document.createElement("button"), text = command.textContent;
  button.type = "button";
  button.textContent = "Copy";
  button.onclick = async () => {
    await navigator.clipboard.writeText(text).catch(() => getSelection().selectAllChildren(command));
    button.textContent = "Copied";
  };
  command.after(button);
}
