// A chart and its twin, a table of the same numbers: for those who cannot see the chart.

import { on } from "./bus.js";
import { el, fill, setText, table } from "./dom.js";
import { clock, short } from "./format.js";
import { grown, spread } from "./history.js";
import { alone, stack } from "./stack.js";
import { paint } from "./theme.js";
import { say } from "./words.js";

const rows = 60; // of a table: the last minute

let shown = 600; // seconds
export const show = (n) => { shown = n; redrawAll(); };

// ceiling is the end of an axis: the next 1, 2, 2.5 or 5 times a power of ten in quarters, so that the last tick is above all values.
function ceiling(high) {
  const step = 10 ** Math.floor(Math.log10(high / 4)), unit = [1, 2, 2.5, 5, 10].find((n) => n * step * 4 >= high) * step;
  return Math.ceil(high / unit) * unit;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600]; // seconds between two times of an axis

const all = new Set();

function redrawAll() {
  for (const c of all) c.update();
}

// chart puts a figure into host. lines() are {key, label, colour, of(second) → number or null, shape: "stack" "line" "step" "area"} from
// the bottom of a stack up, right: true for an axis of its own; they may change, as reasons come and go. say-keys name title and unit.
export function chart(host, { title, unit, lines, height = 200, format = short, top }) {
  const id = host.id;
  const heading = el("h3", { id: `${id}-title` }), measure = el("span", { class: "unit" });
  const toggle = el("button", { type: "button", class: "quiet", "aria-pressed": "false", "aria-describedby": `${id}-title` });
  const legend = el("ul", { class: "legend" }), plot = el("div", { class: "plot", "aria-hidden": "true" });
  const twin = el("div", { class: "scroll twin", tabIndex: 0, hidden: true });
  const note = el("p", { class: "empty", hidden: true }), tip = el("div", { class: "tip", hidden: true });
  host.className = "card chart";
  host.setAttribute("role", "group");
  host.setAttribute("aria-labelledby", `${id}-title`);
  fill(host, el("header", {}, heading, measure, toggle), legend, plot, note, twin);

  let drawn = null, shape = "", current = [], values = [], at = [];

  const c = {
    update() {
      if (host.closest("[hidden]") || document.hidden) return;
      current = lines();
      const { at: times, places } = spread(grown(shown));
      at = times;
      values = current.map((l) => places.map((s) => (s ? l.of(s) : null)));
      note.hidden = current.length > 0;
      if (twin.hidden) draw();
      else tabulate();
      tellLegend(at.length - 1);
    },
    reword() {
      setText(heading, say(title));
      setText(measure, unit ? say(unit) : "");
      setText(toggle, say(twin.hidden ? "as_table" : "as_chart"));
      setText(note, say("nothing_yet"));
      shape = "";
      c.update();
    },
    end() { all.delete(c); drawn?.destroy(); seen.disconnect(); },
  };

  function draw() {
    const now = JSON.stringify([current.map((l) => [l.key, l.label, l.colour, l.shape]), paint("ink-soft"), plot.clientWidth > 0]);
    const data = [at, ...stack(current, values).reverse()];
    if (drawn && now === shape) {
      drawn.setData(data);
      return;
    }
    drawn?.destroy();
    drawn = null;
    shape = now;
    if (!plot.clientWidth || !current.length) return;
    drawn = new uPlot(options(), data, plot);
  }

  const range = (_, low, high) => [0, Math.max(top ? top() : 0, high > 0 ? ceiling(high) : 4)];

  function options() {
    const axis = { stroke: paint("ink-soft"), font: `11px ${getComputedStyle(document.body).fontFamily}`, grid: { stroke: paint("line"), width: 1 }, ticks: { show: false } };
    return {
      width: plot.clientWidth, height, legend: { show: false }, padding: [8, 28, 0, 0],
      cursor: { sync: { key: "sluice" }, drag: { x: false, y: false }, points: { show: false }, y: false },
      scales: { x: { time: true }, y: { range }, right: { range } },
      axes: [
        { ...axis, size: 26, space: 70, incrs: steps, grid: { show: false }, values: (_, ticks) => ticks.map((t) => clock(t)) },
        { ...axis, size: 44, space: 36, values: (_, ticks) => ticks.map((t) => format(t)) },
        ...(current.some((l) => l.right) ? [{ ...axis, scale: "right", side: 1, size: 44, space: 36, grid: { show: false }, values: (_, ticks) => ticks.map((t) => short(t)) }] : []),
      ],
      series: [{}, ...[...current].reverse().map((l) => ({
        label: l.label, scale: l.right ? "right" : "y", stroke: l.colour, width: l.shape === "stack" ? 0 : 1.75, dash: l.dash, spanGaps: false,
        points: { show: true, size: 4, fill: l.colour, filter: (_, i) => alone(values[current.length - i], l.shape) },
        fill: l.shape === "stack" ? l.colour : l.shape === "area" ? l.soft || paint("wash") : undefined,
        paths: l.shape === "line" || l.shape === "area" ? undefined : uPlot.paths.stepped({ align: -1 }),
      }))],
      hooks: { setCursor: [(u) => { tellLegend(u.cursor.idx ?? at.length - 1); point(u); }] },
    };
  }

  // point shows the values of the second under the pointer, beside it.
  function point(u) {
    const { left, top: y, idx } = u.cursor;
    if (u !== drawn || idx === null || idx === undefined || left < 0 || y < 0 || !u.over.matches(":hover")) {
      tip.hidden = true;
      return;
    }
    const text = current.map((l, k) => [l, values[k]?.[idx]]).filter(([, v]) => v);
    fill(tip, el("b", {}, clock(at[idx])), ...text.map(([l, v]) => {
      const mark = el("i");
      mark.style.background = l.colour;
      return el("span", {}, mark, l.label, el("b", {}, format(v)));
    }));
    if (tip.parentElement !== u.over) u.over.append(tip);
    tip.hidden = false;
    const room = u.over.clientWidth - tip.offsetWidth;
    tip.style.transform = `translate(${Math.round(left + 14 <= room ? left + 14 : Math.max(0, left - tip.offsetWidth - 14))}px, ${Math.round(Math.min(Math.max(0, y - 10), Math.max(0, u.over.clientHeight - tip.offsetHeight)))}px)`;
  }

  function tellLegend(i) {
    while (legend.children.length > current.length) legend.lastChild.remove();
    current.forEach((l, k) => {
      let item = legend.children[k];
      if (!item) legend.append(item = el("li", {}, el("i"), el("span"), el("b")));
      item.children[0].style.background = l.colour;
      item.children[0].dataset.line = l.shape === "stack" ? "" : "line";
      setText(item.children[1], l.label);
      const v = values[k]?.[i];
      setText(item.children[2], v === null || v === undefined ? "–" : format(v));
      item.title = l.about || "";
    });
  }

  function tabulate() {
    const heads = [{ text: say("time") }, ...current.map((l) => ({ text: l.label, number: true }))];
    const lines = [];
    for (let i = at.length - 1; i >= 0 && lines.length < rows; i--) {
      lines.push([clock(at[i]), ...values.map((v) => (v[i] === null ? "–" : format(v[i])))]);
    }
    fill(twin, table(say(title), heads, lines));
    twin.setAttribute("aria-label", say(title));
  }

  toggle.addEventListener("click", () => {
    twin.hidden = !twin.hidden;
    plot.hidden = !twin.hidden;
    toggle.setAttribute("aria-pressed", String(!twin.hidden));
    setText(toggle, say(twin.hidden ? "as_table" : "as_chart"));
    c.update();
  });
  const seen = new ResizeObserver(() => {
    if (!plot.clientWidth) return;
    if (drawn) drawn.setSize({ width: plot.clientWidth, height });
    else c.update();
  });
  seen.observe(plot);
  all.add(c);
  c.reword();
  return c;
}

on("second", redrawAll);
on("view", redrawAll);
on("language", () => all.forEach((c) => c.reword()));
on("theme", () => all.forEach((c) => c.reword()));
document.addEventListener("visibilitychange", redrawAll);
