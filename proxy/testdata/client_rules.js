// The rules of client.js, on a simulated browser: its clock jumps from timer to timer.
// node client_rules.js client.js
"use strict";
const fs = require("fs"), vm = require("vm"), source = fs.readFileSync(process.argv[2], "utf8");

// Browser is what the script may touch. fetch asks this.server(url, init), which gives {after, status, headers, body};
// after is the milliseconds of the way there and of the way back.
class Browser {
  constructor(server, storage) {
    Object.assign(this, { server, time: 0, timers: [], asked: [], storage: storage || new Map() });
    const page = {
      document: {
        currentScript: { src: "https://shop.example/.sluice/client.js" }, readyState: "complete",
        querySelectorAll: () => [],
      },
      performance: { now: () => this.time },
      crypto: { randomUUID: () => "key-" + ++Browser.keys },
      sessionStorage: {
        getItem: k => (this.storage.has(k) ? this.storage.get(k) : null),
        setItem: (k, v) => this.storage.set(k, v),
        removeItem: k => this.storage.delete(k),
      },
      setTimeout: (f, ms) => this.timers.push({ at: this.time + (ms < 2 ** 31 ? ms : 1), f }), // as browsers overflow
      setInterval: () => 0, clearInterval: () => {}, addEventListener: () => {},
      fetch: (url, init) => this.fetch(url, init || {}),
      URL,
    };
    page.window = page;
    vm.createContext(page);
    vm.runInContext("Math.random = () => 0.5", page);
    vm.runInContext(source, page);
    this.Sluice = page.Sluice;
  }
  pause(ms) { return new Promise(done => this.timers.push({ at: this.time + ms, f: done })); }
  async fetch(url, init) {
    const path = url.replace("https://shop.example", ""), seen = { at: this.time, path, init };
    this.asked.push(seen);
    const s = Object.assign({ after: [5, 5], status: 200, headers: {}, body: {} }, this.server(path, init, this));
    await this.pause(s.after[0]);
    if (s.arrives) s.body = s.arrives(this.time);
    await this.pause(s.after[1]);
    if (s.lost) throw new TypeError("network");
    const answer = {
      status: s.status, ok: s.status < 300, headers: { get: n => (n in s.headers ? s.headers[n] : null) },
      json: async () => { if (typeof s.body === "string") throw new SyntaxError("no JSON"); return s.body; },
    };
    answer.clone = () => answer;
    return answer;
  }
  // run lets ms go by.
  async run(ms) {
    const end = this.time + ms;
    for (;;) {
      for (let i = 0; i < 30; i++) await null;
      this.timers.sort((a, b) => a.at - b.at);
      if (!this.timers.length || this.timers[0].at > end) break;
      const next = this.timers.shift();
      this.time = next.at;
      next.f();
    }
    this.time = end;
  }
  sale(more) {
    const log = [], button = { disabled: false };
    const on = (state, detail) => log.push({ state, at: this.time, detail });
    const s = this.Sluice.sale(Object.assign({ sku: "1001", url: "https://shop.example/order", button, on }, more));
    const states = () => log.map(l => l.state).filter((x, i, all) => x !== all[i - 1]);
    return { order: () => s.order(), stop: s.stop, log, button, states };
  }
  orders() { return this.asked.filter(a => a.path === "/order"); }
  // keys are the keys of the orders so far, in their order.
  keys() { return this.orders().map(a => a.init.headers["Idempotency-Key"]); }
}
Browser.keys = 0;
const asksStock = path => path.startsWith("/.sluice/stock/"), asksOrder = path => path.startsWith("/.sluice/orders/");

const isOpen = { body: { phase: "open", server_time_ms: 1e12 } };
// serving answers orders from a list, the last of them for ever; and questions for state with status.
const serving = (list, status) => {
  const left = list.slice();
  return path => asksStock(path) ? isOpen : asksOrder(path) ? status || { status: 404, body: "shop's" }
    : left.length > 1 ? left.shift() : left[0];
};
const rejected = (status, reason, after) => {
  const headers = { "X-Sluice-Reason": reason };
  if (after) headers["Retry-After"] = String(after);
  return { status, headers, body: { reason, title: reason } };
};

const faults = [];
let checks = 0;
function must(rule, ok, found) { checks++; if (!ok) faults.push(rule + ": " + JSON.stringify(found)); }

const rules = {
  async "the button opens at the start by the server's clock, whatever the way there"() {
    const uneven = [[300, 20], [4, 4], [900, 100], [10, 200]], late = [[60, 60], [10, 900], [900, 10]];
    for (const [ways, off] of [[uneven, 7e11], [[[4, 4]], -5e6], [late, 3]]) {
      let n = 0;
      const start = 20000;
      const b = new Browser((path, init, self) => ({
        after: ways[Math.min(n++, 99) % ways.length],
        arrives: at => at < start ? { phase: "waiting", server_time_ms: at + off, opens_at_ms: start + off }
          : { phase: "open", server_time_ms: at + off },
      }));
      const s = b.sale();
      await b.run(19990);
      must("closed before the start", s.button.disabled && s.states().join() === "waiting", s.states());
      await b.run(1000);
      const opened = s.log.find(l => l.state === "open");
      const onTime = opened && Math.abs(opened.at - start - 125) <= 10;
      must("open half a spread after the start", onTime && !s.button.disabled, opened);
    }
  },
  async "of two clicks one is an order"() {
    const b = new Browser(serving([{ after: [2000, 2000] }])), s = b.sale();
    await b.run(50);
    s.order(); s.order();
    await b.run(1000);
    s.order();
    await b.run(10000);
    must("one order", b.orders().length === 1 && s.states().join() === "open,ordering,done", [b.orders(), s.states()]);
  },
  async "a temporary rejection is tried again after Retry-After by the same key"() {
    const b = new Browser(serving([rejected(429, "window", 3), rejected(503, "stock_error", 5), {}])), s = b.sale();
    await b.run(50);
    s.order();
    await b.run(30000);
    const o = b.orders();
    const oneKey = new Set(b.keys()).size === 1;
    must("three tries, one key", o.length === 3 && oneKey && s.states().pop() === "done", [o, s.states()]);
    must("not too early", o.length === 3 && o[1].at - o[0].at >= 3000 && o[2].at - o[1].at >= 5000, o.map(a => a.at));
    must("the key is forgotten with its order", b.storage.size === 0, [...b.storage]);
  },
  async "tries end"() {
    const b = new Browser(serving([rejected(429, "rate", 1)])), s = b.sale();
    await b.run(50);
    s.order();
    await b.run(600000);
    must("at most 20", b.orders().length === 20 && s.states().includes("rejected"), [b.orders().length, s.states()]);
  },
  async "a final rejection is final"() {
    for (const reason of ["duplicate", "ended", "denied_ip", "unidentified", "denied", "key_reused"]) {
      const b = new Browser(serving([rejected(409, reason)])), s = b.sale();
      await b.run(50);
      s.order();
      await b.run(60000);
      s.order();
      await b.run(60000);
      const final = s.states().pop() === "rejected" && s.button.disabled && b.storage.size === 0;
      must(reason, b.orders().length === 1 && final, [b.orders(), s.states()]);
    }
  },
  async "what comes back after sold out can be ordered, by another key"() {
    let sold = false;
    const b = new Browser(path => {
      if (asksStock(path)) return { body: { phase: sold ? "sold_out" : "open", server_time_ms: 1 } };
      if (sold) return {};
      sold = true;
      return rejected(409, "sold_out");
    });
    const s = b.sale();
    await b.run(50);
    s.order();
    await b.run(20000);
    must("sold out", s.button.disabled && s.states().pop() === "sold_out", s.states());
    sold = false;
    await b.run(10000);
    sold = true;
    must("open again", !s.button.disabled, s.states());
    s.order();
    await b.run(5000);
    must("another key", b.keys().length === 2 && b.keys()[0] !== b.keys()[1], b.orders());
  },
  async "an order without an answer is asked for, and not sent again"() {
    for (const lost of [{ lost: true }, { status: 500 }, rejected(504, "upstream_timeout"),
      rejected(409, "in_progress", 1)]) {
      let n = 0;
      const state = () => ({ body: { state: ++n < 4 ? "held" : "sold" } });
      const b = new Browser(path => asksOrder(path) ? state() : path === "/order" ? lost : isOpen);
      const s = b.sale();
      await b.run(50);
      s.order();
      await b.run(60000);
      const done = s.states().pop() === "done";
      must("asked until it is known", b.orders().length === 1 && n === 4 && done, [b.orders(), n, s.states()]);
      const asked = b.asked.find(a => asksOrder(a.path));
      must("by its key", asked.path === "/.sluice/orders/" + b.keys()[0] + "?sku=1001", asked.path);
    }
  },
  async "an unknown outcome is said to be unknown, and the key kept"() {
    for (const status of [{ status: 404, body: "the shop's page" }, { status: 404, body: { state: "none" } }]) {
      const b = new Browser(serving([{ lost: true }], status)), s = b.sale();
      await b.run(50);
      s.order();
      await b.run(3000);
      const unsure = s.states().pop() === "unsure" && b.storage.size === 1;
      must("unsure", b.orders().length === 1 && unsure, [b.orders(), s.states()]);
      await b.run(20000);
      s.order();
      await b.run(1000);
      must("the same key", b.keys().length === 2 && b.keys()[0] === b.keys()[1], b.orders());
    }
  },
  async "where the gate reserves, what did not arrive is sent again by the same key"() {
    let n = 0;
    const none = { status: 404, body: { state: "none" } };
    const b = new Browser(path => asksOrder(path) ? none : path === "/order" ? { lost: ++n === 1 } : isOpen);
    const s = b.sale({ resend: true });
    await b.run(50);
    s.order();
    await b.run(10000);
    const keys = b.keys(), done = s.states().pop() === "done";
    must("again", keys.length === 2 && keys[0] === keys[1] && done, [b.orders(), s.states()]);
  },
  async "a page that is loaded again asks for its order first"() {
    const storage = new Map();
    const first = new Browser(serving([{ after: [1e9, 0] }]), storage), s = first.sale();
    await first.run(50);
    s.order();
    await first.run(100);
    const b = new Browser(path => asksOrder(path) ? { body: { state: "sold" } } : isOpen, storage);
    const again = b.sale();
    await b.run(1000);
    const asked = b.asked[0].path.startsWith("/.sluice/orders/" + first.keys()[0]);
    must("asked", asked && again.states().pop() === "done" && again.button.disabled, [b.asked, again.states()]);
  },
  async "a token is fetched at the start, sent, and fetched anew when it is rejected"() {
    let n = 0;
    const stock = path => ({ phase: "open", server_time_ms: 1, token: /token=1/.test(path) ? "t" + ++n : undefined });
    const answer = () => b.orders().length > 1 ? {} : rejected(403, "token");
    const b = new Browser(path => asksStock(path) ? { body: stock(path) } : answer());
    const s = b.sale({ token: true });
    await b.run(2000);
    s.order();
    await b.run(10000);
    const sent = b.orders().map(a => a.init.headers["Sluice-Token"]);
    const anew = sent.length === 2 && sent[0] && sent[1] && sent[0] !== sent[1];
    must("a new one", anew && s.states().pop() === "done", [sent, s.states()]);
  },
  async "a unit that the shop gets back opens the button, also when all were sold"() {
    const ended = at => ({ phase: "ended", left: "none", server_time_ms: at });
    const b = new Browser((p, i, self) => self.time < 30000 ? { body: ended(self.time) } : isOpen), s = b.sale();
    await b.run(60000);
    must("open", s.states().join() === "ended,open" && !s.button.disabled, s.states());
  },
  async "an answer that makes no sense neither opens the button nor speeds up the script"() {
    for (const stock of [{ body: null }, { body: "html" }, { body: { phase: "waiting", opens_at_ms: 6e4 } },
      { body: { phase: "waiting", opens_at_ms: 6e4, server_time_ms: "soon" } },
      rejected(503, "overloaded", 99999999)]) {
      const b = new Browser(() => stock), s = b.sale();
      await b.run(50000);
      must("closed", s.button.disabled && b.asked.length < 30, [stock, b.asked.length, s.states()]);
      s.stop();
    }
    for (const answer of [{ status: 409, body: null }, rejected(503, "paused", 99999999),
      { status: 504, headers: { "X-Sluice-Reason": "upstream_timeout" }, body: null }]) {
      const late = { status: 503, headers: { "Retry-After": "99999999" }, body: null };
      const b = new Browser(serving([answer], late)), s = b.sale();
      await b.run(20);
      s.order().catch(() => {});
      await b.run(60000);
      const found = [answer, b.orders().length, b.asked.length, s.states()];
      must("asked once", b.orders().length === 1 && b.asked.length < 30, found);
      must("told", s.states().some(x => /rejected|queued|checking/.test(x)), s.states());
      s.stop();
    }
  },

  async "the stock is asked for seldom while nothing happens"() {
    const bounds = [["open", 20], ["sold_out", 40], ["waiting", 20], ["ended", 1], ["ended", 20, "none"]];
    for (const [phase, most, left] of bounds) {
      const opens_at_ms = phase === "waiting" ? 1e9 : undefined;
      const b = new Browser((p, i, self) => ({ body: { phase, left, server_time_ms: self.time, opens_at_ms } }));
      const s = b.sale();
      await b.run(100000);
      must(phase, b.asked.length <= most, b.asked.length);
      s.stop();
      const before = b.asked.length;
      await b.run(100000);
      must("stopped", b.asked.length <= before + 1, b.asked.length - before);
    }
  },
};

(async () => {
  for (const name of Object.keys(rules)) {
    try { await rules[name](); } catch (e) { faults.push(name + ": " + e.stack); }
    faults.splice(0).forEach(f => { console.log("FAIL " + name + ": " + f.slice(0, 900)); process.exitCode = 1; });
  }
  console.log(Object.keys(rules).length + " rules, " + checks + " checks");
})();
