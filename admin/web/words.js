// What the page says, in the reader's language. Words are in words.en.json and words.zh.json, under the same keys.

import { tell } from "./bus.js";

let words = {};
export let language = "en";

const kept = "sluice.language";

function wanted() {
  try {
    const chosen = localStorage.getItem(kept);
    if (chosen === "en" || chosen === "zh") return chosen;
  } catch { /* a browser that keeps nothing */ }
  return (navigator.languages || [navigator.language]).some((l, i) => i === 0 && /^zh\b/i.test(l)) ? "zh" : "en";
}

// say is the text of a key, with {name} replaced. A key that is missing shows itself.
export function say(key, values) {
  const text = words[key];
  if (text === undefined) return key;
  return values ? text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole)) : text;
}

export const has = (key) => key in words;

export const locale = () => (language === "zh" ? "zh-CN" : "en-GB");

// speak switches the language, and everything that stands in the page.
export async function speak(to = wanted(), keep = false) {
  const answer = await fetch(`words.${to}.json`);
  if (!answer.ok) throw new Error(`words.${to}.json: ${answer.status}`);
  words = await answer.json();
  language = to;
  if (keep) try { localStorage.setItem(kept, to); } catch { /* for this page alone then */ }
  document.documentElement.lang = to === "zh" ? "zh-CN" : "en";
  for (const e of document.querySelectorAll("[data-say]")) e.textContent = say(e.dataset.say);
  for (const e of document.querySelectorAll("[data-say-label]")) e.setAttribute("aria-label", say(e.dataset.sayLabel));
  tell("language", to);
}
