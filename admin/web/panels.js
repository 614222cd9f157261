// Panels of what people and orders wait in: one for the queue of orders, one for each waiting room. Each is a card of figures, notes and
// actions; what it shows is a list of values that a function makes of the API's answer.

import { ask, change, part } from "./api.js";
import { on } from "./bus.js";
import { action, confirm } from "./dialogs.js";
import { $, el, fill, refill, setText } from "./dom.js";
import { watched } from "./feed.js";
import { rate, span, whole } from "./format.js";
import { say } from "./words.js";

const cards = new Map(); // by id
let told = { rooms: [], queue: null };

// panel draws one card: {id, title, chip: [text, kind], figures: [[label, value, kind]], notes: [text], actions: [[word, press, danger]]}.
// A value that is undefined is not known to this gateway, and is left out.
function panel(p) {
  let c = cards.get(p.id);
  if (!c) {
    c = { title: el("h3"), chip: el("span", { class: "chip" }, el("i"), el("span")), figures: el("dl", { class: "numbers" }), notes: el("div"), actions: el("div", { class: "actions" }), buttons: "" };
    c.element = el("article", { class: "card panel", id: p.id, role: "group" }, el("header", {}, c.title, c.chip), c.figures, c.notes, c.actions);
    cards.set(p.id, c);
    $("panels").append(c.element);
  }
  c.element.setAttribute("aria-label", p.title);
  setText(c.title, p.title);
  setText(c.chip.lastChild, p.chip[0]);
  c.chip.dataset.is = p.chip[1];
  const figures = p.figures.filter(([, value]) => value !== undefined);
  fill(c.figures, figures.map(([label, value, kind]) => el("div", { "data-is": kind }, el("dt", {}, label), el("dd", {}, value))));
  fill(c.notes, p.notes.filter(Boolean).map((text) => el("p", { class: "hint" }, text)));
  const buttons = p.actions.map(([word]) => word).join();
  if (c.buttons === buttons) return;
  c.buttons = buttons;
  refill(c.actions, p.actions.map(([word, press, danger]) => action(say(word), press, { danger, label: `${say(word)}: ${p.title}` })));
}

function queuePanel(q) {
  const busy = q.limit < q.max_in_flight;
  const outcomes = Object.entries(q.attempts).filter(([, n]) => n).sort((a, b) => b[1] - a[1]).map(([name, n]) => `${say(`attempt_${name}`)} ${whole(n)}`);
  return {
    id: "panel-queue", title: say("queue_of_orders"), chip: q.stuck ? [say("queue_stuck"), "bad"] : busy ? [say("queue_slowed"), "warn"] : [say("queue_good"), "good"],
    figures: [
      [say("queue_waiting"), whole(q.waiting)], [say("queue_delivering"), `${whole(q.delivering)} / ${whole(q.max_in_flight)}`],
      [say("queue_unknown"), whole(q.unknown), q.unknown ? "warn" : ""], [say("state_stuck"), whole(q.stuck), q.stuck ? "bad" : ""],
      [say("queue_pace"), q.per_second ? rate(q.per_second) : "–"], [say("queue_last"), q.waiting === 0 ? "–" : q.per_second ? span((1000 * q.waiting) / q.per_second) : say("not_known")],
      [say("queue_oldest"), q.waiting === 0 ? "–" : span(q.oldest_ms)], [say("queue_limit"), whole(q.limit), busy ? "warn" : ""], [say("queue_expired"), whole(q.expired)],
    ],
    notes: [outcomes.length ? `${say("queue_attempts")}: ${outcomes.join(" · ")}` : "", q.stuck ? say("queue_stuck_why") : ""],
    actions: q.stuck ? [["queue_see_stuck", showStuck]] : [],
  };
}

function showStuck() {
  document.querySelector("#orders-state input[value=stuck]").checked = true;
  location.hash = "control";
}

const phases = { open: "good", pre_queue: "info", drawing: "info", last_chance: "warn", hold: "warn", drain: "warn", off: "bad", over: "done" };

// turn changes the state of a room; undo is the state before.
function turn(room, to) {
  confirm({
    title: say(`room_${to}_title`, { room: room.name }), text: say(`room_${to}_text`), button: say(`room_${to}`), danger: to === "off",
    act: async () => {
      const set = (state) => change("POST", `rooms/${part(room.name)}`, { state });
      await set(to);
      return { text: say(`room_${to}_done`, { room: room.name }), undo: async () => { await set(room.state); } };
    },
  });
}

// edit changes a value of a room: its rate, or its message. A change in between is not known here, so that undo restores what was shown.
function edit(room, key, kind) {
  confirm({
    title: say(`room_${key}_title`, { room: room.name }), text: say(`room_${key}_text`), button: say("save"),
    fields: [{ name: "value", label: say(`room_${key}_label`), kind, value: room[key] ?? "", min: 0, optional: true }],
    act: async ({ value }) => {
      const set = (to) => change("POST", `rooms/${part(room.name)}`, { [key]: to });
      await set(kind === "number" ? value || 0 : value);
      return { text: say("room_saved", { room: room.name }), undo: async () => { await set(room[key] ?? (kind === "number" ? 0 : "")); } };
    },
  });
}

// share is a share of 1 in percent; undefined stays so.
const share = (n) => (n === undefined ? undefined : `${Math.round(100 * n)} %`);

function roomPanel(room) {
  const now = () => told.rooms.find((r) => r.name === room.name) || room;
  const to = { open: ["hold", "drain", "off"], hold: ["open", "drain", "off"], drain: ["open", "hold", "off"], off: ["open"] }[room.state];
  return {
    id: `panel-room-${room.name}`, title: say("room_of", { room: room.name }), chip: [say(`phase_${room.phase}`), phases[room.phase] || "quiet"],
    figures: [
      [say("room_waiting"), whole(room.waiting)], [say("room_people"), room.people === undefined ? undefined : whole(room.people)], [say("room_issued"), whole(room.issued)],
      [say("room_called"), whole(room.called)], [say("room_claimed"), whole(room.claimed)], [say("room_inside"), whole(room.inside)], [say("room_used"), whole(room.used)],
      [say("room_conversion"), room.used + room.expired ? share(room.conversion) : "–"],
      [say("room_wait"), room.wait_p90_ms && `${span(room.wait_p50_ms)} / ${span(room.wait_p90_ms)}`], [say("room_chance"), room.chance < 0 || !room.waiting ? undefined : share(room.chance)],
      [say("free"), room.free < 0 ? "–" : whole(room.free)], [say("room_parked"), whole(room.parked)],
      [say("room_rate"), room.rate ? rate(room.rate) : say("as_configured")],
    ],
    notes: [room.message ? `${say("room_message")}: ${room.message}` : "", room.phase === "drawing" ? say("room_needs_beacon", { round: room.beacon_round, room: room.name }) : "", room.age_ms > 3000 ? say("room_stale", { t: span(room.age_ms) }) : ""],
    actions: [...to.map((state) => [`room_${state}`, () => turn(now(), state), state === "off"]),
      ["room_rate_edit", () => edit(now(), "rate", "number")], ["room_message_edit", () => edit(now(), "message", "text")]],
  };
}

function draw() {
  const all = [...told.rooms.map(roomPanel), ...(told.queue ? [queuePanel(told.queue)] : [])];
  for (const [id, c] of cards) {
    if (all.some((p) => p.id === id)) continue;
    c.element.remove();
    cards.delete(id);
  }
  all.forEach(panel);
  $("panels").hidden = $("panels-title").hidden = all.length === 0;
}

async function look() {
  if (!watched("live")) return;
  try {
    const [{ rooms }, queue] = await Promise.all([ask("rooms"), ask("queue")]);
    told = { rooms, queue: queue.enabled ? queue : null };
    draw();
  } catch { /* the stream tells that nothing comes */ }
}

export function startPanels() {
  for (const topic of ["view", "changed", "deed", "connected"]) on(topic, look);
  for (const topic of ["language", "role"]) on(topic, () => { for (const c of cards.values()) c.buttons = ""; draw(); });
  setInterval(look, 2000);
}
