// Checks in Chinese: findings.zh.json has each format and its translation, with {1}, {2} … for the verbs, whose values are
// translated, too. {=1} is a value as it is: the text of Redis.

import { on, tell } from "./bus.js";
import { has, language, say } from "./words.js";

let sentences = []; // {is: RegExp, says}, those with the longest fixed text first

const verb = /%(?:\[\d+\])?[-+#0 ]*\d*([a-zA-Z])/g;

// compile is a format as a RegExp: %d is a number, %s, %v, %q and their like are anything.
export function compile(format) {
  let is = "", end = 0;
  for (const found of format.matchAll(verb)) {
    is += escaped(format.slice(end, found.index)) + (found[1] === "d" || found[1] === "o" ? "(-?\\d+)" : "([^]+?)");
    end = found.index + found[0].length;
  }
  return new RegExp(`^${is}${escaped(format.slice(end))}$`);
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// sorted makes sentences of formats and their translations.
export const sorted = (catalogue) => Object.entries(catalogue).sort(([a], [b]) => fixedLength(b) - fixedLength(a))
  .map(([format, says]) => ({ is: compile(format), says }));

const fixedLength = (format) => format.replace(verb, "").length;

const deepest = 4; // sentences within sentences

// translated is text by these sentences.
export function translated(text, by, depth = 0) {
  if (depth === deepest) return text;
  for (const { is, says } of by) {
    const found = is.exec(text);
    if (found) return says.replace(/\{(=?)(\d)\}/g, (_, verbatim, n) => (verbatim ? found[n] : translated(found[n], by, depth + 1)));
  }
  return text;
}

export const translate = (text) => translated(text, sentences);

export const about = (name) => (has(`about_${name}`) ? say(`about_${name}`) : name);

on("language", async () => {
  if (language !== "zh" || sentences.length) {
    if (language !== "zh") sentences = [];
    return;
  }
  const answer = await fetch("findings.zh.json");
  if (!answer.ok) return;
  sentences = sorted(await answer.json());
  tell("findings");
});
