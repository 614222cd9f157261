// The reasons for which the gate rejects: their names and colours, in the order of a chart.

import { shadeOf, shades } from "./shades.js";
import { dark } from "./theme.js";
import { has, say } from "./words.js";

const order = Object.keys(shades);

export function shade(reason) {
  const [hue, chroma, light] = shadeOf(reason);
  return `oklch(${dark() ? light - 3 : light}% ${chroma} ${hue})`;
}

export const nameOf = (reason) => (has(`reason_${reason}`) ? say(`reason_${reason}`) : reason.replaceAll("_", " "));

// stacked puts reasons into the order of the chart; those that are new to this page come last.
export const stacked = (reasons) => [...reasons].sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));

const place = (reason) => (reason in shades ? order.indexOf(reason) : order.length);
