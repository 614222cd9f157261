// Elements out of values. Text goes in as text: nothing that a client named can become markup.

export const $ = (id) => document.getElementById(id);

// visible is text in which characters that change its order are escaped, so that no name looks like another one.
export const visible = (text) => typeof text !== "string" ? text :
  text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

// What else than an element's children is read.
const read = new Set(["textContent", "title", "aria-label", "placeholder"]);

// el makes one element: properties by name, "on…" listeners, attributes where there is no property; children are nodes or text.
export function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [name, given] of Object.entries(props || {})) {
    const value = read.has(name) ? visible(given) : given;
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "class") e.className = value;
    else if (name in e && typeof value !== "object" && !name.startsWith("aria")) e[name] = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false).map(visible));
  return e;
}

export const fill = (parent, ...children) => parent.replaceChildren(...children.flat().filter(Boolean).map(visible));

// refill is fill for what is drawn anew while the focus may be in it: a focus on a button is on the same one afterwards, or near it.
export function refill(parent, ...children) {
  const was = parent.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  fill(parent, ...children);
  if (was === null) return;
  const same = [...parent.querySelectorAll("[aria-label]")].find((e) => e.getAttribute("aria-label") === was && !e.disabled);
  (same || parent.querySelector("button:enabled"))?.focus();
}

// setText leaves an element alone that says it already, so that a selection survives the next second.
export function setText(e, text) {
  const shown = visible(text);
  if (e.textContent !== shown) e.textContent = shown;
}

// scrollable lets a keyboard reach what is wider than its box, and says what the box holds.
export function scrollable(e) {
  const name = () => e.closest("article, section")?.querySelector("h2, h3")?.textContent;
  const measure = () => {
    const wide = e.scrollWidth > e.clientWidth + 1;
    if (wide === (e.tabIndex === 0) || e === document.activeElement) return; // a focus is not taken away
    if (wide) {
      e.tabIndex = 0;
      e.setAttribute("role", "region");
      e.setAttribute("aria-label", name() || "");
    } else for (const attribute of ["tabindex", "role", "aria-label"]) e.removeAttribute(attribute);
  };
  e.addEventListener("blur", measure);
  new ResizeObserver(measure).observe(e);
  new MutationObserver(measure).observe(e, { childList: true, subtree: true, characterData: true });
}

// table draws rows of cells; heads are {text, number}. A cell is text or nodes. A table of the class "rows"
// shows each row as a list on a narrow screen.
export function table(caption, heads, rows, empty, cls) {
  if (rows.length === 0 && empty) return el("p", { class: "empty" }, empty);
  const th = (h) => el("th", { scope: "col", class: h.number ? "number" : "" }, h.text);
  const td = (cell, i) => el(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: heads[i].number ? "number" : "", "data-head": i ? heads[i].text : null }, cell);
  return el("table", { class: cls }, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, heads.map(th))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(td)))));
}
