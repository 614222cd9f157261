import { readFileSync } from "node:fs";

const axeSource = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

// axe gives what axe-core finds serious or critical. Contrast is measured by inspect, in much less time.
export async function axe(page) {
  if (!await page.evaluate(() => window.axe)) await page.evaluate(axeSource);
  const options = { resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } };
  const { violations } = await page.evaluate(options => window.axe.run(document, options), options);
  return violations.filter(one => one.impact === "serious" || one.impact === "critical")
    .map(one => `${one.id}: ${one.nodes.map(n => n.html.slice(0, 120)).slice(0, 3).join(" ; ")}`);
}

// inspect runs in the page and gives what is wrong with what it shows, for eyes or fingers (WCAG 2.2, AA). Targets are
// at least so many px wide and high.
export function inspect(target) {
  const faults = [], paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = colour => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
  };
  // What is behind e: the grounds of all that it lies in, one painted over the other.
  const ground = e => {
    if (e.parentElement) ground(e.parentElement);
    else over(matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#fff");
    over(getComputedStyle(e).backgroundColor);
  };
  const luminance = () => [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  let least = Infinity;
  for (const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walk.nextNode();) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !e.checkVisibility() || e.closest("option, :disabled, [aria-hidden=true]")) continue;
    ground(e);
    const a = luminance();
    over(getComputedStyle(e).color);
    const b = luminance(), contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    least = Math.min(least, contrast);
    if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(2)} of "${text}"`);
  }
  for (const e of document.querySelectorAll("a,button,input,select")) {
    if (!e.checkVisibility() || e.classList.contains("skip")) continue;
    const { width, height } = (e.type === "radio" ? e.closest("label") : e).getBoundingClientRect();
    if (width < target || height < target) faults.push(`${e.tagName} "${e.textContent}" is ${width} × ${height}`);
    if (!e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length) faults.push(`${e.tagName} has no name`);
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push(`${document.documentElement.scrollWidth} px wide on a screen of ${innerWidth}`);
  const heads = [...document.querySelectorAll("h1")].filter(e => e.checkVisibility()).length;
  if (heads !== 1) faults.push(`${heads} main headings`);
  if (!document.title) faults.push("no title");
  ground(document.body);
  return { faults, least, background: luminance(), lang: document.documentElement.lang };
}
