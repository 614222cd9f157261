// One stream for all tabs of a browser: the tab that holds the lock reads it and passes it on. Outside of https and of this machine
// there are no locks: then all begin, and who hears a tab with a lower number stops. A browser has six connections to a gate, and no more.

import { ask, open } from "./api.js";
import { tell } from "./bus.js";
import { $ } from "./dom.js";
import { last, take } from "./history.js";
import { stopwatch } from "./stopwatch.js";
import { read } from "./stream.js";

const silence = 5000; // ms without a second: the stream has broken
const firstPause = 500, longestPause = 10_000; // ms between two tries

const heard = stopwatch(); // since the last second
let reason = "";

// age is for how long nothing has been heard, in ms; Infinity = never.
export const age = () => heard.read();
export const why = () => reason;

// stale is for how long nothing may have been heard before nothing is live any more, in ms.
export const stale = 3000;

// watched reports whether it is worth asking for what is in no second: an operator sees one of these parts of the page, and the gate is there.
export const watched = (...ids) => !document.hidden && age() < stale && ["app", ...ids].every((id) => !$(id).hidden);

const number = Math.random(); // of this tab
const channel = "BroadcastChannel" in window ? new BroadcastChannel("sluice") : null;

function hear(seconds, deeds) {
  if (seconds.length) {
    if (!take(seconds)) return;
    const back = age() >= stale;
    heard.start();
    if (back) tell("connected");
    tell("second", seconds[seconds.length - 1]);
  }
  for (const deed of deeds) tell("deed", deed);
}

function pass(seconds, deeds) {
  reason = "";
  hear(seconds, deeds);
  channel?.postMessage({ from: number, seconds, deeds });
}

// gap fills what was missed, out of the gate's ten minutes.
async function gap(after = last()) {
  const told = await ask(`history?after=${after}`);
  if (told.seconds.length) hear(told.seconds, []);
}

async function follow(signal) {
  await gap();
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  try {
    const extra = last() ? { "Last-Event-ID": String(last()) } : {};
    const answer = await open("GET", "events", { extra, signal: stop.signal });
    for await (const one of read(answer, silence, abort)) {
      if (one.event === "second") pass([JSON.parse(one.data)], []);
      else if (one.event === "audit") pass([], [JSON.parse(one.data)]);
    }
  } finally {
    signal.removeEventListener("abort", abort);
    stop.abort();
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// keep follows until signal, however often the stream breaks.
async function keep(signal) {
  for (let wait = firstPause; !signal.aborted; wait = Math.min(2 * wait, longestPause)) {
    const before = last();
    try {
      await follow(signal);
      reason = "";
    } catch (fault) {
      if (signal.aborted) return;
      reason = fault.status ? fault.message : "";
      if (fault.status === 401) return tell("shut", fault);
    }
    if (last() > before) wait = firstPause;
    await pause(wait * (0.5 + Math.random() / 2));
  }
}

let running = null; // AbortController

export function start() {
  if (running) return;
  running = new AbortController();
  const { signal } = running;
  gap().catch(() => {}); // keep tries again, and says so
  if (!channel) {
    keep(signal);
    return;
  }
  const leave = listen(signal);
  navigator.locks?.request("sluice-stream", { signal }, () => {
    leave();
    return keep(signal);
  }).catch(() => {}); // ended before its turn came
}

// listen takes what another tab reads, and reads itself while all others are silent. Where there are no locks, the tab with the lowest
// number reads.
function listen(signal) {
  let own = null;
  const begin = () => {
    own = new AbortController();
    keep(own.signal);
  };
  const yields = () => {
    own?.abort();
    own = null;
  };
  channel.onmessage = ({ data }) => {
    if (navigator.locks || data.from < number) yields();
    if (data.seconds[0] && last() && data.seconds[0].at > last() + 2) gap(last()).catch(() => {});
    hear(data.seconds, data.deeds);
  };
  const watch = setInterval(() => {
    if (age() >= silence && !own && !document.hidden) begin();
  }, 1000);
  const leave = () => {
    clearInterval(watch);
    yields();
    channel.onmessage = null;
  };
  signal.addEventListener("abort", leave);
  if (!navigator.locks) begin();
  return leave;
}

export function stop() {
  running?.abort();
  running = null;
  heard.clear();
  reason = "";
}
