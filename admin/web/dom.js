// Elements out of values. Text goes in as text: nothing that somebody else named can become markup.

export const $ = (id) => document.getElementById(id);

// el makes one element: properties by name, "on…" listeners, attributes where there is no property; children are nodes or text.
export function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "class") e.className = value;
    else if (name in e && typeof value !== "object" && !name.startsWith("aria")) e[name] = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

export const fill = (parent, ...children) => parent.replaceChildren(...children.flat().filter(Boolean));

// refill is fill for what is drawn anew while somebody may be in it: who was on a button is on the same one afterwards, or near it.
export function refill(parent, ...children) {
  const was = parent.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  fill(parent, ...children);
  if (was === null) return;
  const same = [...parent.querySelectorAll("[aria-label]")].find((e) => e.getAttribute("aria-label") === was && !e.disabled);
  (same || parent.querySelector("button:enabled"))?.focus();
}

// setText leaves an element alone that says it already, so that a selection survives the next second.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// table draws rows of cells; heads are {text, number}. A cell is text or nodes.
export function table(caption, heads, rows, empty) {
  if (rows.length === 0 && empty) return el("p", { class: "empty" }, empty);
  const th = (h) => el("th", { scope: "col", class: h.number ? "number" : "" }, h.text);
  const td = (cell, i) => el(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: heads[i].number ? "number" : "" }, cell);
  return el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, heads.map(th))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(td)))));
}
