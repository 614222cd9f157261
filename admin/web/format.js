// Numbers and times as people read them.

import { locale, say } from "./words.js";

export const whole = (n) => Math.round(n).toLocaleString(locale());

// rate is a count a second: one digit behind the point while it is small.
export const rate = (n) => (n > 0 && n < 10 && n % 1 ? n.toLocaleString(locale(), { maximumFractionDigits: 1 }) : whole(n));

// short is for an axis.
export function short(n) {
  if (n >= 1e6) return `${+(n / 1e6).toFixed(1)}M`;
  if (n >= 1e3 && n < 1e4) return whole(n);
  if (n >= 1e4) return `${+(n / 1e3).toFixed(1)}k`;
  return String(+n.toFixed(n >= 100 ? 0 : n < 1 ? 2 : 1));
}

export const millis = (ms) => (ms >= 100 ? `${whole(ms)} ms` : `${+ms.toFixed(ms < 10 ? 2 : 1)} ms`);

// clock is the time of day of a Unix second, or of a Date.
export const clock = (at) => new Date(typeof at === "number" ? at * 1000 : at).toLocaleTimeString(locale(), { hour12: false });

export const moment = (at) => new Date(at).toLocaleString(locale(), { hour12: false, dateStyle: "medium", timeStyle: "medium" });

// span is a duration in ms, in its two largest units.
export function span(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s < 60) return say("n_s", { n: s });
  if (s < 3600) return say("n_min_s", { n: Math.floor(s / 60), s: s % 60 });
  if (s < 86400) return say("n_h_min", { n: Math.floor(s / 3600), m: Math.floor((s % 3600) / 60) });
  return say("n_d_h", { n: Math.floor(s / 86400), h: Math.floor((s % 86400) / 3600) });
}

// digits is a countdown: 00:14:59.
export function digits(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000)), two = (n) => String(n).padStart(2, "0");
  const days = Math.floor(s / 86400);
  return (days ? `${days} ${say("days")} ` : "") + `${two(Math.floor((s % 86400) / 3600))}:${two(Math.floor((s % 3600) / 60))}:${two(s % 60)}`;
}

export const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–");
