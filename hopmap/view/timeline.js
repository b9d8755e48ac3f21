
// What ranks do over time. Where several steps or ranks share a pixel, neighbouring pixels have
// their colours in the same shares: by thresholds of an ordered dither.
const bayer = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5].map(k => (k + 0.5) / 16);
const longest = Math.max(...data.runs.map(r => r.makespan)) || 1;
const waits = ["#e69f00", "#f2b6d6", "#00563f", "#5b3fa8", "#7a4a21"]; // none is of a bar's part
const stateColour = (names, k) => k === 0 ? css("--low") : k === 1 ? css("--p0") : k === 2 ? css("--p1") : names[k] === "waiting in other calls" ? waits[4] : waits[k - 3];
let rowCursor = 0;
const span = (view, count) => [view.y0 * count, view.size * count];
let kept = {}; // the last picture, which the time of the slider does not change
function paintTimeline(view, W, H) {
  const key = [state.run, state.order, view.x0, view.y0, view.size, W, H, dark.matches].join();
  if (kept.key === key) return kept.sheet;
  const r = run(), { ranks, starts, count } = rows(state.run), [first, shown] = span(view, count);
  const colours = r.states.map((_, k) => [...channels(stateColour(r.states, k)), 255]);
  const image = new ImageData(W, H), step = r.makespan / r.steps || 1, steps = new Uint32Array(r.states.length);
  const columns = Array.from({ length: W + 1 }, (_, x) => (view.x0 + view.size * x / W) * longest / step);
  for (let y = 0, at = 0; y < H; y++) {
    const from = Math.min(count - 1, Math.floor(first + shown * y / H)), to = Math.max(from + 1, Math.min(count, Math.floor(first + shown * (y + 1) / H)));
    const low = starts[from], up = starts[to] ?? ranks.length;
    for (let x = 0; x < W; x++, at += 4) {
      const begin = Math.floor(columns[x]), end = Math.max(begin + 1, Math.min(r.steps, Math.floor(columns[x + 1])));
      steps.fill(0);
      if (begin >= r.steps) steps[0] = 1;
      else for (let k = low; k < up; k++) for (let t = begin; t < end; t++) steps[r.state[ranks[k] * r.steps + t]]++;
      let k = -1, left = bayer[4 * (y & 3) + (x & 3)] * steps.reduce((sum, n) => sum + n);
      while (left >= 0) left -= steps[++k];
      image.data.set(colours[k], at);
    }
  }
  const sheet = new OffscreenCanvas(W, H);
  sheet.getContext("2d").putImageData(image, 0, 0);
  kept = { key, sheet };
  return sheet;
}
function drawTimeline(g, wide, high, view) {
  const r = run(), arrangement = rows(state.run), [first, shown] = span(view, arrangement.count), dots = g.getTransform().a;
  const sheet = paintTimeline(view, Math.max(1, Math.round(wide * dots)), Math.max(1, Math.min(Math.round(high * dots), 32 * Math.ceil(shown))));
  g.imageSmoothingEnabled = false;
  g.clearRect(0, 0, wide, high);
  g.drawImage(sheet, 0, 0, wide, high);
  get("span").replaceChildren(...[view.x0, view.x0 + view.size].map(part => {
    const end = document.createElement("span");
    end.textContent = seconds(part * longest);
    return end;
  }));
  const x = time => (time / longest - view.x0) / view.size * wide, y = row => (row - first) / shown * high;
  g.strokeStyle = css("--page");
  g.lineWidth = 1;
  if (state.order.startsWith("by ") && arrangement.edges.length * 6 < high / view.size) {
    for (const edge of arrangement.edges) {
      g.beginPath();
      g.moveTo(0, y(edge));
      g.lineTo(wide, y(edge));
      g.stroke();
    }
  }
  g.beginPath();
  for (let k = 0; k < r.path.time.length; k++) g.lineTo(x(r.path.time[k]), y(arrangement.at[r.path.rank[k]] + 0.5));
  const dense = r.path.time.length * view.size > wide / 3; // a halo would hide what is below
  for (const [style, width] of [["--halo", dense ? 0 : 4], ["--ink", dense ? 0.8 : 1.6]]) {
    if (!width) continue;
    g.strokeStyle = css(style);
    g.lineWidth = width;
    g.stroke();
  }
  if (state.bin) {
    const [left, right] = [(state.bin - 1) * r.bin, Math.min(longest, state.bin * r.bin)].map(time => Math.round(x(time)));
    g.fillStyle = css("--accent");
    g.globalAlpha = 0.25;
    g.fillRect(left, 0, Math.max(2, right - left), high);
    g.globalAlpha = 1;
    g.fillRect(left, 0, 2, high);
    g.fillRect(right, 0, 2, high);
  }
}
function sayTimeline(row, time) {
  const r = run(), { ranks, starts, say } = rows(state.run), at = Math.min(r.steps - 1, Math.floor(time / r.makespan * r.steps));
  if (!(time < r.makespan)) return `${say(row, row)}, at ${seconds(time)}: the run is over`;
  const own = ranks.slice(starts[row], starts[row + 1]), counts = new Map();
  for (const rank of own) {
    const name = r.states[r.state[rank * r.steps + at]];
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const does = [...counts].sort((a, b) => b[1] - a[1]).map(([name, n]) => own.length > 1 ? `${n} ${name}` : name).join(", ");
  let k = 0;
  while (k + 1 < r.path.time.length && r.path.time[k + 1] <= time) k++;
  return `${say(row, row)}, at ${seconds(time)}: ${does}; critical path at rank ${r.path.rank[k] ?? "-"}`;
}
const timelineView = picture(get("timeline"), get("say-ranks"), {
  draw: drawTimeline,
  say(x, y) {
    const view = timelineView.view, [first, shown] = span(view, rows(state.run).count);
    rowCursor = Math.min(rows(state.run).count - 1, Math.floor(first + shown * y));
    return sayTimeline(rowCursor, (view.x0 + view.size * x) * longest);
  },
  click(x) {
    const view = timelineView.view;
    setBin(Math.floor((view.x0 + view.size * x) * longest / run().bin) + 1);
  },
  key(name) {
    if (name === "Enter") return "";
    const count = rows(state.run).count;
    if (name === "ArrowLeft" || name === "ArrowRight") setBin(state.bin + (name === "ArrowRight" ? 1 : -1));
    else rowCursor = Math.min(count - 1, Math.max(0, rowCursor + (name === "ArrowDown" ? 1 : -1)));
    return sayTimeline(Math.min(rowCursor, count - 1), Math.max(0, state.bin - 0.5) * run().bin);
  },
});
redraws.push(() => {
  const r = run(), item = (colour, name) => {
    const made = document.createElement("li"), mark = document.createElement("i");
    mark.style.background = colour;
    made.append(mark, name);
    return made;
  };
  get("states").replaceChildren(...r.states.map((name, k) => item(stateColour(r.states, k), name)), item(css("--ink"), "critical path, as a line"));
});
