
// Traffic between rows of ranks, the same colours in both matrices; of a link that is chosen, only
// what crosses it.
const shared = { x0: 0, y0: 0, size: 1 }; // both are zoomed together
const matrices = data.runs.map((r, number) => {
  const canvas = get(`matrix-${number}`), part = { grid: null, x: 0, y: 0 };
  let pairs = null;
  part.collect = () => { pairs = state.link < 0 ? null : pairsOver(state.link, r); };
  // Sum bytes into cells: of one row each, or of several where rows are narrower than pixels.
  part.sum = (wide, view) => {
    const { at, count } = rows(number), shown = Math.max(1, Math.round(view.size * count)), size = Math.max(1, Math.min(shown, Math.floor(wide)));
    const left = Math.round(view.x0 * count), above = Math.round(view.y0 * count), sums = new Float64Array(size * size);
    const add = p => {
      const row = at[data.src[p]] - above, column = at[data.dst[p]] - left;
      if (row < 0 || column < 0 || row >= shown || column >= shown) return;
      sums[Math.floor(row * size / shown) * size + Math.floor(column * size / shown)] += data.bytes[p];
    };
    if (pairs) pairs.forEach(add); else for (let p = 0; p < data.src.length; p++) add(p);
    part.grid = { size, shown, left, above, sums };
    return part.grid;
  };
  part.sayCell = (row, column) => {
    const { size, shown, left, above, sums } = part.grid, { say } = rows(number);
    const span = (k, first) => say(first + Math.ceil(k * shown / size), first + Math.ceil((k + 1) * shown / size) - 1);
    return `${r.name}: ${span(row, above)} to ${span(column, left)}: ${bytes(sums[row * size + column])}${state.link < 0 ? "" : ` over ${linkName(state.link)}`}`;
  };
  part.draw = (g, wide, high, view) => {
    const { size, sums, shown, left, above } = part.grid ?? part.sum(wide, view), [least, most] = range();
    const image = g.createImageData(size, size), ground = channels(css("--low"));
    for (let k = 0; k < sums.length; k++) {
      const t = sums[k] ? most > least ? Math.log(sums[k] / least) / Math.log(most / least) : 1 : -1;
      image.data.set([...t < 0 ? ground : ramp(t), 255], 4 * k);
    }
    const sheet = new OffscreenCanvas(size, size);
    sheet.getContext("2d").putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(sheet, 0, 0, wide, high);
    if (pairs && 5 * size > wide) { // a few narrow cells would not be seen
      for (let k = 0; k < sums.length; k++) {
        if (!sums[k]) continue;
        g.fillStyle = rgb(image.data.slice(4 * k, 4 * k + 3));
        g.fillRect((k % size + 0.5) * wide / size - 2.5, (Math.floor(k / size) + 0.5) * high / size - 2.5, 5, 5);
      }
    }
    const edges = state.order.startsWith("by ") ? rows(number).edges : [];
    g.strokeStyle = css("--soft");
    g.lineWidth = 0.7;
    g.beginPath();
    if (edges.length * 5 < wide / view.size) {
      for (const edge of edges) {
        const x = (edge - left) / shown * wide, y = (edge - above) / shown * high;
        g.moveTo(x, 0);
        g.lineTo(x, high);
        g.moveTo(0, y);
        g.lineTo(wide, y);
      }
    }
    g.stroke();
    labelAxes(number, left, left + shown - 1, above, above + shown - 1);
    if (document.activeElement !== canvas) return;
    const cell = wide / size;
    g.strokeStyle = css("--accent");
    g.lineWidth = 2.5;
    g.strokeRect(part.x * cell - 2, part.y * cell - 2, cell + 4, cell + 4);
  };
  part.say = (x, y) => {
    const { size } = part.grid, within = v => Math.min(size - 1, Math.max(0, Math.floor(v * size)));
    [part.x, part.y] = [within(x), within(y)];
    return part.sayCell(part.y, part.x);
  };
  part.key = name => {
    const { size } = part.grid, [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[name] ?? [0, 0];
    part.x = Math.min(size - 1, Math.max(0, part.x + dx));
    part.y = Math.min(size - 1, Math.max(0, part.y + dy));
    part.picture.draw();
    return part.sayCell(part.y, part.x);
  };
  part.picture = picture(canvas, get("say-matrix"), part, shared);
  part.moved = () => {
    sumMatrices();
    matrices.forEach(each => each.picture.draw());
  };
  canvas.addEventListener("focus", part.picture.draw);
  canvas.addEventListener("blur", part.picture.draw);
  return Object.assign(part, { canvas, number });
});
// Both axes say their first and last row that is seen, and what they are.
function labelAxes(number, left, right, above, below) {
  const { label } = rows(number);
  for (const [what, from, to] of [["senders", above, below], ["receivers", left, right]]) {
    get(`${what}-${number}`).replaceChildren(...[label(from), what, label(to)].map(text => {
      const made = document.createElement("span");
      made.textContent = text;
      return made;
    }));
  }
}
// Least and most bytes of a cell in any of the matrices.
function range() {
  let [least, most] = [Infinity, 0];
  for (const part of matrices) {
    for (const sum of part.grid?.sums ?? []) if (sum) [least, most] = [Math.min(least, sum), Math.max(most, sum)];
  }
  return most ? [least, most] : [1, 1];
}
function sumMatrices() {
  for (const part of matrices) part.sum(part.canvas.clientWidth, shared);
}
redraws.unshift(() => {
  for (const part of matrices) part.collect();
  sumMatrices();
});
redraws.push(() => {
  const [least, most] = range(), level = data.levels.find(each => state.order.endsWith(each.name)) ?? data.levels[0];
  scale("scale-matrix", bytes(least), bytes(most), "bytes of a cell, on a logarithmic scale");
  data.runs.forEach((r, number) => {
    const left = r.leaving[level.name];
    get(`leaving-${number}`).textContent = `${bytes(left)} leave their ${level.name}: ${percent(data.total ? left / data.total : 0)} of all bytes`;
  });
  const said = state.link < 0 ? "" : matrices.map(part => {
    const found = pairsOver(state.link, data.runs[part.number]);
    return `${found.length} rank pair${found.length === 1 ? "" : "s"}, ${bytes(found.reduce((sum, p) => sum + data.bytes[p], 0))} by ${data.runs[part.number].name}`;
  }).join("; ");
  get("filter").textContent = said ? `Over ${linkName(state.link)}: ${said}` : "";
  get("clear").hidden = state.link < 0;
});

// Controls.
function setBin(bin) {
  state.bin = Math.min(run().bins, Math.max(0, bin));
  get("time").max = run().bins;
  get("time").value = state.bin;
  const r = run();
  get("now").textContent = state.bin ? `${seconds((state.bin - 1) * r.bin)} to ${seconds(Math.min(state.bin * r.bin, longest))}` : "whole run";
  redraw();
}
get("time").oninput = event => setBin(+event.target.value);
get("order").onchange = event => {
  state.order = event.target.value;
  redraw();
};
for (const input of document.querySelectorAll("input[name=run]")) {
  input.onchange = () => {
    const time = (state.bin - 0.5) * run().bin;
    state.run = +input.value;
    cursor = null;
    setBin(state.bin ? Math.floor(time / run().bin) + 1 : 0);
  };
}
let playing = 0;
get("play").onclick = () => {
  const stop = playing;
  clearInterval(playing);
  playing = stop ? 0 : setInterval(() => setBin(state.bin >= run().bins ? 1 : state.bin + 1), 160);
  get("play").textContent = playing ? "Stop" : "Play";
};
get("clear").onclick = () => choose(state.link);
addEventListener("keydown", event => { if (event.key === "Escape" && state.link >= 0) choose(state.link); });
for (const part of document.querySelectorAll("[data-say]")) {
  part.onpointerenter = part.onfocus = part.onclick = () => {
    part.closest("section").querySelector(".say").textContent = part.dataset.say;
  };
}
dark.onchange = redraw;
setBin(0);
requestAnimationFrame(() => { document.documentElement.dataset.drawn = Math.round(performance.now()); });
