// What a reader of a report would trip over, as sentences; an empty list is a good page.
(() => {
  const wrong = [], wide = document.documentElement.clientWidth;
  const say = (what, of) => wrong.push(`${what}: <${of.tagName.toLowerCase()}> ${of.textContent.trim().slice(0, 60)}`);
  const style = e => getComputedStyle(e);

  if (document.documentElement.scrollWidth > wide) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const inBox = e => e && e !== document.body && (/auto|scroll|hidden/.test(style(e).overflowX) || inBox(e.parentElement));
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (box.width && (box.right > wide + 1 || box.left < -1) && !inBox(e.parentElement)) say("sticks out of the window", e);
    const own = [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (own && !e.closest("svg") && e.checkVisibility() && parseFloat(style(e).fontSize) < 11) say("text below 11 px", e);
  }

  // figures are SVG: their text is as large as their picture lets it be
  for (const i of document.images) if (!i.complete || !i.naturalWidth) wrong.push(`not loaded: ${i.alt}`);
  for (const svg of document.querySelectorAll("figure svg")) {
    const name = svg.parentElement.getAttribute("aria-label");
    const shown = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const sizes = [...svg.querySelectorAll("text")].map(text => parseFloat(style(text).fontSize) * shown);
    if (!sizes.length) wrong.push(`no text found in ${name}`);
    if (Math.min(...sizes) < 10.9) wrong.push(`text of ${Math.min(...sizes)} px in ${name}`);
    for (const use of svg.querySelectorAll("use")) {
      const of = use.getAttribute("xlink:href");
      if (!document.getElementById(of.slice(1))) wrong.push(`no ${of} in ${name}`);
    }
  }

  const apart = "h1, h2, h3, nav, .how, .findings, figcaption, .scroll, figure";
  const boxes = [...document.querySelectorAll(apart)].filter(e => e.checkVisibility()).map(e => [e, e.getBoundingClientRect()]);
  boxes.forEach(([a, p], k) => boxes.slice(k + 1).forEach(([b, q]) => {
    const over = p.left + 1 < q.right && q.left + 1 < p.right && p.top + 1 < q.bottom && q.top + 1 < p.bottom;
    if (over && !a.contains(b)) say(`over ${b.textContent.trim().slice(0, 40)}`, a);
  }));
  return wrong;
})()
