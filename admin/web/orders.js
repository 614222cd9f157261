// Reservations that an operator may have to decide: those of unknown outcome, and those that are undecided; and any one
// by its serial.

import { ask, change, part } from "./api.js";
import { on } from "./bus.js";
import { action, confirm } from "./dialogs.js";
import { $, el, fill, refill, setText, table } from "./dom.js";
import { watched } from "./feed.js";
import { moment, whole } from "./format.js";
import { say } from "./words.js";

const most = 100;

let told = null, fault = "", keeps = false;

const sought = () => $("orders-serial").value.trim();

const state = () => document.querySelector("#orders-state input:checked").value;

function settle(r, op) {
  confirm({
    title: say(`${op}_title`, { serial: r.serial }), text: say(`${op}_text`), button: say(op),
    danger: op !== "confirm" && op !== "requeue",
    act: async () => {
      const done = await change("POST", `reservations/${part(r.serial)}/${op}?sku=${part(r.sku)}`);
      return { text: say("settled", { serial: r.serial, state: say(`state_${done.state}`) }) };
    },
  });
}

const deciding = (r) => [
  action(say("confirm_order"), () => settle(r, "confirm"), { label: `${say("confirm_order")}: ${r.serial}` }),
  state() === "stuck" && !sought()
    ? action(say("requeue"), () => settle(r, "requeue"), { label: `${say("requeue")}: ${r.serial}` })
    : null,
  action(say("release"), () => settle(r, "release"), { danger: true, label: `${say("release")}: ${r.serial}` }),
];

const refunding = (r) =>
  action(say("refund"), () => settle(r, "refund"), { danger: true, label: `${say("refund")}: ${r.serial}` });

function draw() {
  if (!told) return fill($("orders-body"), el("p", { class: "empty" }, fault || say("nothing_yet")));
  const heads = [say("serial"), "SKU", say("user"), say("units"), say("how"), say("deadline"), ""].map((text, i) => ({ text, number: i === 3 }));
  const rows = told.reservations.map((r) => [
    el("code", {}, r.serial), r.sku, r.user || "–", whole(r.quantity), say(r.overdue ? "state_overdue" : r.unknown ? "state_unknown" : `state_${r.state}`), r.deadline ? moment(r.deadline) : "–",
    el("div", { class: "actions" }, r.state === "held" ? deciding(r) : r.state === "sold" ? refunding(r) : null),
  ]);
  refill($("orders-body"), table(say("orders"), heads, rows, say(`none_${state()}`), "rows"), told.more ? el("p", { class: "hint" }, say("there_are_more", { n: most })) : null);
}

async function look() {
  if (!watched("control")) return;
  if (!keeps) {
    told = null;
    fault = say("no_ledgers");
    return draw();
  }
  try {
    $("orders-stuck").hidden = !(await ask("queue")).enabled;
    told = sought()
      ? { reservations: [await ask(`reservations/${part(sought())}`)] }
      : await ask(`reservations?state=${state()}&limit=${most}`);
    fault = "";
  } catch (caught) {
    told = null;
    fault = caught.message;
  }
  draw();
}

export function startOrders() {
  on("status", (s) => { keeps = s.stock.includes("ledger"); });
  $("orders-state").addEventListener("change", look);
  $("orders-serial").addEventListener("change", look); // by Enter, too
  $("orders-refresh").addEventListener("click", look);
  for (const topic of ["view", "changed", "connected"]) on(topic, look);
  for (const topic of ["language", "role"]) on(topic, draw);
  setText($("orders-body"), "");
}
