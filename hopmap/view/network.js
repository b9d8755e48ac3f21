
// Links: lines on a plan or cells of a matrix. A mark is a line or a cell, with its links.
const drawing = data.drawing, marks = [], vertex = v => v < data.nodes ? data.names[v] ?? `${v}` : `switch ${v - data.nodes}`;
const linkName = l => `${vertex(data.from[l])} → ${vertex(data.to[l])}`;
// A cell is a row and a column, or while these are narrow a block of each.
const fine = new Map(), coarse = new Map();
let markAt = coarse;
const isPlan = drawing.kind === "plan", sizeOf = map => map === fine ? drawing.size : drawing.names.length;
function collect(map, unit) {
  for (let l = 0; l < data.from.length; l++) {
    const [row, column] = [unit(data.from[l]), unit(data.to[l])], cell = row * sizeOf(map) + column;
    if (!map.has(cell)) map.set(cell, { links: [], row, column });
    map.get(cell).links.push(l);
  }
}
if (isPlan) {
  for (let l = 0; l < data.from.length; l++) marks.push({ links: [l] });
} else {
  collect(fine, v => drawing.unit[v]);
  collect(coarse, v => drawing.block[drawing.unit[v]]);
}
// Narrow cells are drawn as blocks; return whether that has changed.
function divide(pixels) {
  const wanted = pixels < 5 ? coarse : fine;
  if (isPlan || (markAt === wanted && marks.length)) return false;
  markAt = wanted;
  marks.splice(0, Infinity, ...wanted.values());
  cursor = null;
  weigh();
  return true;
}
// Share of the time that a link is busy: in the bin of the slider, or of the whole run.
const busy = (l, r = run(), bin = state.bin) => bin ? r.busy[l * r.bins + Math.min(bin, r.bins) - 1] / 255 : r.makespan ? r.busySeconds[l] / r.makespan : 0;
// Of each mark its busiest link, and how busy that is; all marks that are busy, the busiest first.
let ranked = [];
function weigh() {
  for (const mark of marks) {
    mark.link = mark.links[0];
    mark.busy = busy(mark.link);
    for (const l of mark.links.slice(1)) if (busy(l) > mark.busy) [mark.link, mark.busy] = [l, busy(l)];
  }
  ranked = marks.filter(mark => mark.busy).sort((a, b) => b.busy - a.busy);
}
redraws.push(weigh);
const peak = data.runs.reduce((top, r) => r.busy.reduce((a, b) => Math.max(a, b), top), 0) / 255;
const peakOfRun = Math.max(...data.runs.map(r => r.busySeconds.reduce((a, b) => Math.max(a, b), 0) / (r.makespan || 1)));
const top = () => (state.bin ? peak : peakOfRun) || 1;

// Rank pairs whose route in a run crosses a link, heaviest first as they stand.
function pairsOver(link, r) {
  const found = [];
  for (let p = 0, k = 0; p < data.src.length; p++) {
    for (; k < r.routeStart[p + 1]; k++) {
      if (r.route[k] !== link) continue;
      found.push(p);
      k = r.routeStart[p + 1];
      break;
    }
  }
  return found;
}
function sayLink(l, others = "") {
  const r = run(), pairs = pairsOver(l, r), kind = data.kinds[data.kind[l]];
  const heavy = pairs.slice(0, 3).map(p => `${data.src[p]}>${data.dst[p]} ${bytes(data.bytes[p])}`).join(", ");
  const now = state.bin ? `, busy ${percent(busy(l))} of this time` : "";
  return `${linkName(l)} (${kind}${others}): ${bytes(r.linkBytes[l])}${now}, busy ${percent(busy(l, r, 0))} of the run` +
    (pairs.length ? `; ${pairs.length} rank pair${pairs.length > 1 ? "s" : ""}, heaviest ${heavy}` : "; no rank pair");
}
function sayMark(mark) {
  const others = mark.links.length, name = k => drawing.names[k];
  const where = !isPlan && markAt === coarse ? mark.row === mark.column ? `in ${name(mark.row)}` : `from ${name(mark.row)} to ${name(mark.column)}` : "here";
  return sayLink(mark.link, others > 1 ? `, busiest of ${others} links ${where}` : "");
}
function choose(link) {
  state.link = state.link === link ? -1 : link;
  redraw();
}

// From the drawing's own units to pixels: the same on both axes.
const box = isPlan ? bounds() : [-0.2, -0.06, 1, 1]; // with names of rows and columns
function bounds() {
  let [left, low, right, high] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const points of [drawing.nodes, drawing.lines, ...drawing.planes ?? []]) {
    for (let k = 0; k < points.length; k += 2) {
      [left, right] = [Math.min(left, points[k]), Math.max(right, points[k])];
      [low, high] = [Math.min(low, points[k + 1]), Math.max(high, points[k + 1])];
    }
  }
  const edge = 1.2 * drawing.radius;
  return [left - edge, low - edge, right + edge, high + edge];
}
let sheet = null; // how the last drawing was placed
function placed(wide, high, view) {
  const unit = Math.min(wide / (box[2] - box[0]), high / (box[3] - box[1])) / view.size;
  const left = (wide - unit * view.size * (box[2] - box[0])) / 2 / view.size - view.x0 * wide / view.size;
  const above = (high - unit * view.size * (box[3] - box[1])) / 2 / view.size - view.y0 * high / view.size;
  if (isPlan) return { wide, high, unit, x: x => left + (x - box[0]) * unit, y: y => above + (box[3] - y) * unit };
  divide(unit / drawing.size);
  const cell = unit / sizeOf(markAt), [x0, y0] = [left - box[0] * unit, above - box[1] * unit];
  return { wide, high, unit: cell, x: x => x0 + x * cell, y: y => y0 + y * cell };
}
// A link keeps to the right of its way, so that both directions are seen.
function lane(mark, s) {
  const k = 4 * mark.links[0], ends = drawing.lines;
  const a = s.x(ends[k]), b = s.y(ends[k + 1]), c = s.x(ends[k + 2]), d = s.y(ends[k + 3]);
  const long = Math.hypot(c - a, d - b) || 1, aside = s.width * 0.75, free = Math.min(drawing.radius * s.unit, long / 3);
  const dx = (c - a) / long, dy = (d - b) / long;
  return [a + dx * free - dy * aside, b + dy * free + dx * aside, c - dx * free - dy * aside, d - dy * free + dx * aside];
}
let cursor = null; // the mark that the keys have moved to, or the pointer is at
function drawLinks(g, wide, high, view) {
  const s = sheet = placed(wide, high, view), limit = top(), levels = Array.from({ length: 33 }, () => []);
  s.width = isPlan ? Math.min(7, Math.max(0.8, s.unit * drawing.radius * 0.42)) : 0;
  g.clearRect(0, 0, wide, high);
  for (const mark of marks) levels[Math.ceil(32 * Math.min(1, (mark.busy ?? 0) / limit))].push(mark);
  g.fillStyle = css("--card");
  (drawing.planes ?? []).forEach((corners, k) => {
    g.fillRect(s.x(corners[0]), s.y(corners[5]), s.unit * (corners[2] - corners[0]), s.unit * (corners[5] - corners[1]));
    if (s.unit < 6 || !drawing.names[k]) return;
    g.font = "12px system-ui, sans-serif";
    g.textAlign = "left";
    g.fillStyle = css("--soft");
    g.fillText(drawing.names[k], s.x(corners[6]), s.y(corners[7]) - 5);
    g.fillStyle = css("--card");
  });
  if (!isPlan) g.fillRect(s.x(0), s.y(0), s.unit * sizeOf(markAt), s.unit * sizeOf(markAt));
  levels.forEach((own, k) => {
    g.strokeStyle = g.fillStyle = k ? rgb(ramp((k - 1) / 31)) : css("--zero");
    g.lineWidth = s.width;
    g.beginPath();
    for (const mark of own) {
      if (isPlan) {
        const [a, b, c, d] = lane(mark, s);
        g.moveTo(a, b);
        g.lineTo(c, d);
      } else {
        const cell = Math.max(1, s.unit - (s.unit > 6 ? 1 : 0));
        g.rect(s.x(mark.column), s.y(mark.row), cell, cell);
      }
    }
    if (isPlan) g.stroke(); else g.fill();
  });
  if (isPlan) drawNodes(g, s); else drawNames(g, s);
  g.font = "bold 12px system-ui, sans-serif";
  g.textAlign = "center";
  g.textBaseline = "middle";
  ranked.slice(0, 5).forEach((mark, k) => number(g, s, mark, k + 1));
  for (const mark of [cursor, marks.find(mark => mark.links.includes(state.link))]) if (mark) outline(g, s, mark);
}
function drawNodes(g, s) {
  const radius = drawing.radius * s.unit, taken = new Set(run().nodeOf);
  if (radius < 1.2) return;
  g.lineWidth = 1;
  g.strokeStyle = css("--soft");
  g.textAlign = "center";
  g.textBaseline = "middle";
  for (let v = 0; 2 * v < drawing.nodes.length; v++) {
    const [x, y] = [s.x(drawing.nodes[2 * v]), s.y(drawing.nodes[2 * v + 1])];
    if (x < -radius || y < -radius || x > s.wide + radius || y > s.high + radius) continue;
    g.beginPath();
    if (v < data.nodes) g.arc(x, y, radius, 0, 7); else g.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    g.fillStyle = taken.has(v) || v >= data.nodes ? css("--page") : css("--zero");
    g.fill();
    g.stroke();
    g.fillStyle = css("--ink");
    const text = shortName(v), size = Math.min(12, radius * 0.9, 3 * radius / text.length);
    if (size < 7) continue;
    g.font = `${size}px system-ui, sans-serif`;
    g.fillText(text, x, y + 0.5);
  }
}
// In its circle or square a node or switch has what the list calls it, without the word switch.
const shortName = v => vertex(v).replace("switch ", "");
function sayVertex(v) {
  const ranks = [];
  if (v < data.nodes) run().nodeOf.forEach((node, rank) => { if (node === v) ranks.push(rank); });
  const what = v >= data.nodes ? vertex(v) : data.names[v] ? `node ${v}, ${data.names[v]}` : `node ${v}`;
  if (v >= data.nodes) return what;
  const some = ranks.slice(0, 16).join(", ") + (ranks.length > 16 ? ", …" : "");
  return `${what}: ${ranks.length ? `rank${ranks.length > 1 ? "s" : ""} ${some}` : "no rank"}`;
}
function vertexUnder(x, y) {
  if (!isPlan) return -1;
  const s = sheet, px = x * s.wide, py = y * s.high, radius = drawing.radius * s.unit;
  for (let v = 0; 2 * v < drawing.nodes.length; v++) {
    if (Math.hypot(s.x(drawing.nodes[2 * v]) - px, s.y(drawing.nodes[2 * v + 1]) - py) < radius) return v;
  }
  return -1;
}
// Rows and columns of a matrix by name, as many as there is room for; also while it is zoomed.
const rowNames = [];
if (!isPlan) drawing.unit.forEach((row, v) => { rowNames[row] = v < data.nodes && !data.names[v] ? `node ${v}` : vertex(v); });
function drawNames(g, s) {
  const names = markAt === fine ? rowNames : drawing.names, count = sizeOf(markAt);
  const left = Math.max(4, s.x(0)), above = Math.max(16, s.y(0)), room = left - 8;
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  const fit = text => g.measureText(text).width <= room ? text : (text.match(/\d+( to \d+)?$/)?.[0] ?? text).replace(" to ", "–");
  const shown = names.map(fit), wide = Math.max(...shown.map(text => g.measureText(text).width)) + 8;
  const write = (text, x, y, align) => {
    const long = g.measureText(text).width;
    g.fillStyle = css("--page");
    g.fillRect(align === "right" ? x - long - 2 : x - long / 2 - 2, y - 7, long + 4, 14);
    g.fillStyle = css("--soft");
    g.textAlign = align;
    g.fillText(text, x, y + 0.5);
  };
  for (const [step, place, at] of [[Math.ceil(14 / s.unit), s.y, "row"], [Math.ceil(wide / s.unit), s.x, "column"]]) {
    for (let k = 0; k < count; k += step) {
      const middle = place(k + 0.5), text = shown[k];
      if (middle < (at === "row" ? above : left) || middle > (at === "row" ? s.high : s.wide)) continue;
      if (at === "row") write(text, Math.max(left - 4, g.measureText(text).width + 4), middle, "right");
      else write(text, middle, above - 9, "center");
    }
  }
}
const middle = (mark, s) => {
  if (!isPlan) return [s.x(mark.column + 0.5), s.y(mark.row + 0.5)];
  const [a, b, c, d] = lane(mark, s);
  return [(a + c) / 2, (b + d) / 2];
};
function number(g, s, mark, k) {
  const [px, py] = middle(mark, s);
  if (px < 0 || py < 0 || px > s.wide || py > s.high) return;
  const x = Math.min(s.wide - 11, Math.max(11, px)), y = Math.min(s.high - 11, Math.max(11, py));
  g.beginPath();
  g.arc(x, y, 9, 0, 7);
  g.fillStyle = css("--page");
  g.fill();
  g.lineWidth = 1.5;
  g.strokeStyle = g.fillStyle = css("--ink");
  g.stroke();
  g.fillText(k, x, y + 0.5);
}
function outline(g, s, mark) {
  g.strokeStyle = css("--accent");
  g.lineWidth = 3;
  g.beginPath();
  if (isPlan) {
    const [a, b, c, d] = lane(mark, s), long = Math.hypot(c - a, d - b) || 1, w = s.width / 2 + 3;
    const [dx, dy] = [(c - a) / long * w, (d - b) / long * w];
    g.moveTo(a - dx - dy, b - dy + dx);
    g.lineTo(c + dx - dy, d + dy + dx);
    g.lineTo(c + dx + dy, d + dy - dx);
    g.lineTo(a - dx + dy, b - dy - dx);
    g.closePath();
  } else g.rect(s.x(mark.column) - 3, s.y(mark.row) - 3, s.unit + 6, s.unit + 6);
  g.stroke();
}
function markUnder(x, y) {
  const s = sheet, px = x * s.wide, py = y * s.high;
  if (!isPlan) {
    const column = Math.floor((px - s.x(0)) / s.unit), row = Math.floor((py - s.y(0)) / s.unit), size = sizeOf(markAt);
    const inside = row >= 0 && column >= 0 && row < size && column < size;
    return inside ? markAt.get(row * size + column) ?? null : null;
  }
  let [best, least] = [null, Math.max(6, s.width)];
  for (const mark of marks) {
    const [a, b, c, d] = lane(mark, s), long = (c - a) ** 2 + (d - b) ** 2 || 1;
    const t = Math.min(1, Math.max(0, ((px - a) * (c - a) + (py - b) * (d - b)) / long));
    const far = Math.hypot(a + t * (c - a) - px, b + t * (d - b) - py);
    if (far < least) [best, least] = [mark, far];
  }
  return best;
}
// The canvas is as high as its width and the drawing ask for.
get("links").style.aspectRatio = Math.min(3, Math.max(isPlan ? 0.6 : 1, (box[2] - box[0]) / (box[3] - box[1])));
const linksPicture = picture(get("links"), get("say-network"), {
  draw: drawLinks,
  say(x, y) {
    const on = vertexUnder(x, y), mark = on < 0 ? markUnder(x, y) : null, said = mark ? sayMark(mark) : on < 0 ? "" : sayVertex(on);
    if (mark === cursor) return said;
    cursor = mark;
    linksPicture.draw();
    return said;
  },
  click(x, y) {
    const mark = vertexUnder(x, y) < 0 ? markUnder(x, y) : null;
    if (mark) choose(mark.link);
  },
  key(name) {
    const order = ranked;
    if (name === "Enter") {
      if (cursor) choose(cursor.link);
      return "";
    }
    if (!order.length) return "no link is busy at this time";
    const step = name === "ArrowRight" || name === "ArrowDown" ? 1 : -1, now = order.indexOf(cursor);
    cursor = order[now < 0 ? 0 : (now + step + order.length) % order.length];
    const [x, y] = middle(cursor, sheet);
    linksPicture.reveal(x / sheet.wide, y / sheet.high);
    return sayMark(cursor);
  },
});
redraws.push(() => {
  scale("scale-links", "0", percent(top()), `of ${state.bin ? "this time" : "the run"} that the busiest link is busy, in any run${isPlan ? "" : `; a cell is the busiest link from a row to a column${markAt === coarse ? ", which are groups of switches or nodes: zoom in to see each" : ""}`}`);
  get("legend-links").textContent = isPlan
    ? `Circles are nodes, with ${data.names.length ? "names" : "numbers"} as in the list below; point at one for its ranks.${drawing.nodes.length > 2 * data.nodes ? ` Squares are switches by number.${data.names.length ? "" : " A number alone in the list is a node."}` : ""} A bold number is a link's place in the list.`
    : `A row has the nodes or switches where links begin, a column where they end. Rows and columns are ${markAt === coarse ? `blocks of these, the first is ${drawing.names[0]}` : "single nodes or switches"}.${data.names.length ? "" : " A number alone in the list is a node."} A bold number is a link's place in the list.`;
  get("busiest").replaceChildren(...ranked.slice(0, 5).map(mark => {
    const item = document.createElement("li"), button = document.createElement("button"), link = mark.link;
    button.type = "button";
    button.textContent = `${linkName(link)}: ${percent(busy(link))}, ${bytes(run().linkBytes[link])}`;
    button.setAttribute("aria-pressed", link === state.link);
    button.onclick = () => choose(link);
    item.append(button);
    return item;
  }));
});
