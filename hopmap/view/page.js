// Data: the length of the JSON, the JSON, and behind it the arrays; see packing.py.
const get = id => document.getElementById(id);
async function unpack() {
  const text = atob(get("data").textContent), packed = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) packed[k] = text.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const size = new Uint32Array(buffer, 0, 1)[0], head = new TextDecoder().decode(new Uint8Array(buffer, 4, size));
  const kinds = { Uint8Array, Uint16Array, Uint32Array, Float64Array };
  return JSON.parse(head, (_, v) => v && v.array ? new kinds[v.array](buffer, 4 + size + v.at, v.length) : v);
}
const data = await unpack();

// What the controls say, and who draws it.
const state = { run: data.runs.length - 1, bin: 0, link: -1, order: get("order").value };
const redraws = [], run = () => data.runs[state.run];
const redraw = () => redraws.forEach(draw => draw());

const seconds = s => {
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [0, "ns"]].find(([least]) => s >= least) ?? [1, "s"];
  return `${+(s / (scale || 1e-9)).toPrecision(4)} ${unit}`;
};
const bytes = b => {
  const [scale, unit] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [0, "B"]].find(([least]) => b >= least);
  return `${+(b / (scale || 1)).toPrecision(3)} ${unit}`;
};
const percent = share => `${+(100 * share).toPrecision(share < 0.01 ? 2 : 3)} %`;
const plural = name => name.endsWith("switch") ? `${name}es` : name.startsWith("p") && name.includes(" of ") ? name.replace(" of", "s of") : `${name}s`;

// More is farther from the page's own colour, in light and in dark: inferno's stops, as in figures.
const dark = matchMedia("(prefers-color-scheme: dark)");
const inferno = [[251, 203, 88], [247, 145, 36], [228, 90, 49], [167, 44, 96], [106, 23, 110], [40, 11, 84]];
const nocturnal = [[104, 30, 122], [146, 38, 106], [186, 54, 85], [227, 89, 51], [249, 140, 10], [252, 240, 160]];
const ramp = t => {
  const stops = dark.matches ? nocturnal : inferno, at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const k = Math.min(stops.length - 2, Math.floor(at));
  return stops[k].map((c, i) => Math.round(c + (stops[k + 1][i] - c) * (at - k)));
};
const rgb = ([r, g, b]) => `rgb(${r},${g},${b})`;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = text => [1, 3, 5].map(k => parseInt(text.slice(k, k + 2), 16));
function scale(id, low, high, words) {
  const bar = document.createElement("i");
  bar.style.background = `linear-gradient(to right, ${[0, 1, 2, 3, 4, 5].map(k => rgb(ramp(k / 5)))})`;
  get(id).replaceChildren(low, bar, `${high} (${words})`);
}

// Ranks in rows: in order or by unit, or a row for each unit; `at` is the row of each rank.
const arranged = new Map();
function rows(number) {
  const key = `${number} ${state.order}`;
  if (arranged.has(key)) return arranged.get(key);
  const nodeOf = data.runs[number].nodeOf, [by, name] = state.order.match(/^(by )?(.*)$/).slice(1);
  const level = data.levels.find(each => each.name === name);
  const unit = level ? Array.from(nodeOf, node => level.ofNode[node]) : null;
  const ranks = Array.from({ length: data.ranks }, (_, rank) => rank);
  if (unit) ranks.sort((a, b) => unit[a] - unit[b] || a - b);
  const starts = [], edges = [];
  ranks.forEach((rank, k) => {
    const first = unit && (!k || unit[rank] !== unit[ranks[k - 1]]);
    if (first) edges.push(by ? k : starts.length);
    if (!unit || by || first) starts.push(k);
  });
  const at = new Uint32Array(data.ranks);
  starts.forEach((start, row) => {
    for (let k = start; k < (starts[row + 1] ?? ranks.length); k++) at[ranks[k]] = row;
  });
  const say = (from, to) => {
    const first = ranks[starts[from]], last = ranks[(starts[to + 1] ?? ranks.length) - 1];
    const which = u => `${level.name} ${u}`, units = unit && (unit[first] === unit[last] ? which(unit[first]) : `${plural(level.name)} ${unit[first]} to ${unit[last]}`);
    if (unit && !by) return units;
    const own = from === to ? `rank ${first}, node ${nodeOf[first]}` : unit ? `${to - from + 1} ranks` : `ranks ${first} to ${last}`;
    return level && level.name !== "node" ? `${own}, ${units}` : own;
  };
  const label = row => unit ? `${level.name} ${unit[ranks[starts[row]]]}` : `rank ${ranks[row]}`;
  const made = { at, ranks, starts, edges, count: starts.length, say, label };
  arranged.set(key, made);
  return made;
}

// A picture: zoom by keys, wheel and drag; what is under the pointer is said, a click is passed on.
// `part` has draw(g, wide, high, view), say(x, y), click(x, y) and key(name); x and y from 0 to 1.
function picture(canvas, output, part, view = { x0: 0, y0: 0, size: 1 }) {
  let drawn = "";
  const draw = () => {
    const dots = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    drawn = `${wide} ${high}`;
    canvas.width = Math.round(wide * dots);
    canvas.height = Math.round(high * dots);
    const g = canvas.getContext("2d");
    g.setTransform(dots, 0, 0, dots, 0, 0);
    part.draw(g, wide, high, view);
  };
  const place = event => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  const say = text => { if (text) output.textContent = text; };
  const move = (dx, dy) => {
    view.x0 = Math.min(1 - view.size, Math.max(0, view.x0 + dx));
    view.y0 = Math.min(1 - view.size, Math.max(0, view.y0 + dy));
    (part.moved ?? draw)();
  };
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const size = Math.min(1, Math.max(1 / 512, view.size / factor)), less = view.size - size;
    view.size = size;
    move(less * x, less * y);
  };
  // Move as far as it takes to see a place, and draw.
  const reveal = (x, y) => x < 0 || y < 0 || x > 1 || y > 1 ? move((x - 0.5) * view.size, (y - 0.5) * view.size) : draw();
  let held = null;
  canvas.onpointerdown = event => { held = { x: event.clientX, y: event.clientY, moved: false }; };
  canvas.onpointermove = event => {
    if (held && event.buttons && (held.moved || Math.hypot(event.clientX - held.x, event.clientY - held.y) > 4)) {
      held.moved = true;
      return move(-event.movementX / canvas.clientWidth * view.size, -event.movementY / canvas.clientHeight * view.size);
    }
    say(part.say(...place(event)));
  };
  canvas.onclick = event => {
    if (held?.moved) return;
    const at = place(event);
    say(part.say(...at));
    part.click?.(...at);
  };
  canvas.addEventListener("wheel", event => {
    if (document.activeElement !== canvas) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, ...place(event));
  }, { passive: false });
  canvas.onkeydown = event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ("+=".includes(event.key)) zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") zoom(1 / 512);
    else if (/^(Arrow|Enter)/.test(event.key)) say(part.key(event.key));
    else return;
    event.preventDefault();
  };
  redraws.push(draw);
  new ResizeObserver(() => {
    if (drawn !== `${canvas.clientWidth} ${canvas.clientHeight}`) draw();
  }).observe(canvas);
  return { view, draw, reveal };
}
