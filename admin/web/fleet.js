// The instances of the fleet, and in what they differ.

import { ask } from "./api.js";
import { on } from "./bus.js";
import { $, el, fill, setText, table } from "./dom.js";
import { watched } from "./feed.js";
import { rate, whole } from "./format.js";
import { nameOf } from "./reasons.js";
import { say } from "./words.js";

const silent = 3; // seconds from which a summary is not of now

let fleet = null; // null: this instance shares nothing with others

function standing(one) {
  if (one.age > silent) return ["bad", say("fleet_silent", { n: whole(one.age) })];
  if (one.phase === "draining") return ["warn", say("draining")];
  if (!one.ready) return ["bad", say("not_ready")];
  return one.degraded ? ["warn", say("degraded")] : ["good", say("is_ready")];
}

function draw() {
  const all = fleet?.instances || [];
  $("fleet").hidden = all.length < 2;
  const faults = (fleet?.differ || []).map((what) => say(`fleet_differs_${what}`));
  for (const one of all) {
    if (one.unfit?.length) faults.push(say("fleet_unfit", { host: one.host || one.id, keys: one.unfit.join(", ") }));
  }
  $("fleet-differs").hidden = !faults.length;
  setText($("fleet-differs"), faults.length ? `${say("fleet_differs")} ${faults.join(" ")}` : "");
  if (all.length < 2) return;
  const sum = (of) => all.reduce((n, one) => n + (one.age > silent ? 0 : of(one)), 0);
  const row = (one) => {
    const [is, text] = standing(one);
    return [el("span", { title: one.id }, one.id === fleet.self ? `${one.host || one.id} ${say("fleet_this")}` : one.host || one.id),
      el("span", { class: "chip", "data-is": is }, el("i"), text), one.version, one.config, say(one.mode === "enforce" ? "enforces" : "observes"),
      rate(one.requests), rate(one.admitted), `${rate(one.rejected)}${one.mostly ? ` ${nameOf(one.mostly)}` : ""}`, whole(one.in_flight)];
  };
  const heads = ["host", "how", "version", "config", "mode"].map((word) => ({ text: say(word) }))
    .concat(["figure_in", "admitted", "rejected", "in_flight"].map((word) => ({ text: say(word), number: true })));
  const together = [say("fleet_all", { n: all.length }), "", "", "", "", rate(sum((one) => one.requests)), rate(sum((one) => one.admitted)),
    rate(sum((one) => one.rejected)), whole(sum((one) => one.in_flight))];
  fill($("fleet-body"), table(say("fleet"), heads, [...all.map(row), together], "", "rows"));
}

async function look() {
  if (!watched()) return;
  try {
    fleet = await ask("fleet");
  } catch (fault) {
    if (fault.status !== 409) return; // Redis is away: what is known stays, and the banner of Redis tells
    fleet = null;
  }
  draw();
}

export function startFleet() {
  for (const topic of ["view", "connected", "changed"]) on(topic, look);
  on("language", draw);
  setInterval(look, 2000);
}
