// What every scenario stands on: a browser without any data, visitors each with a storage of their own, and ears for
// what no visitor may cause: an error in the console, an exception, a request that fails.
import { execFile } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

export const note = text => console.log("note: " + text);
export const wrong = text => console.log("wrong: " + String(text).replace(/\x1b\[\d+m/g, "").replace(/\s*\n\s*/g, " | "));
export const pause = ms => new Promise(done => setTimeout(done, ms));

// is tells what is not so, and goes on.
export function is(what, holds) {
  if (!holds) wrong(what);
}

// sluice runs a command of the built binary, and gives what it printed.
export async function sluice(...args) {
  const { stdout } = await promisify(execFile)(process.env.SLUICE, args, { timeout: 30_000 });
  return stdout;
}

// launch starts a browser. Chromium may crash at its own start: it is tried three times.
async function launch(tries = 3) {
  try {
    return await chromium.launch({
      executablePath: process.env.CHROMIUM, headless: true, args: flags, timeout: 60_000,
    });
  } catch (e) {
    if (tries === 1) throw e;
    note(`the browser did not start, ${tries - 1} tries left: ${String(e).slice(0, 100)}`);
    return launch(tries - 1);
  }
}

// play starts a browser and lets the scenario have it. When that is ready for it, it asks the test for its stage.
export async function play(scenario) {
  const browser = await launch();
  const visitors = [];
  async function visitor(name, options = {}) {
    const { cookies, expects = [], ...rest } = options;
    const context = await browser.newContext(rest);
    context.setDefaultTimeout(30_000);
    if (cookies) await context.addCookies(Object.entries(cookies).map(([name, value]) => ({ name, value, domain: "127.0.0.1", path: "/" })));
    const page = await context.newPage();
    const v = { name, context, page, expects, requests: [] };
    visitors.push(v);
    const heard = text => {
      if (!v.expects.some(e => e.test(text))) wrong(`${name}: ${text}`);
    };
    context.on("page", p => ears(p));
    const ears = p => {
      p.on("console", m => { if (m.type() === "error" || m.type() === "warning") heard(`console ${m.type()}: ${m.text()} ${m.location().url}`); });
      p.on("pageerror", e => heard(`exception: ${e.stack || e}`));
      p.on("request", r => v.requests.push(r));
      // What a page leaves behind when it is left is no failure.
      p.on("requestfailed", r => { if (r.failure().errorText !== "net::ERR_ABORTED") heard(`request failed: ${r.method()} ${r.url()} ${r.failure().errorText}`); });
      p.on("response", r => { if (r.status() > 399) heard(`status ${r.status()}: ${r.request().method()} ${r.url()}`); });
    };
    ears(page);
    return v;
  }
  async function stage() {
    console.log("ready");
    return JSON.parse(await new Promise(done => createInterface({ input: process.stdin }).once("line", done)));
  }
  try {
    await scenario(visitor, stage);
  } catch (e) {
    wrong(e.stack || e);
    for (const v of visitors) {
      const text = await v.page.evaluate(() => document.body.innerText).catch(() => "");
      wrong(`${v.name} sees ${v.page.url()}: ${text.slice(0, 600)}`);
    }
  }
  await browser.close();
  process.exit(0);
}
