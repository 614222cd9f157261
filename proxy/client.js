// Sluice: counts down by the server's clock, opens the button at the start, and places one order at a time.
// A form of the page: <form data-sluice-sku="1001" action="/api/seckill/1001/order" method="post">; or Sluice.sale({...}).
(function (w, d) {
  "use strict";
  const own = d.currentScript && d.currentScript.src, home = own ? new URL(own).origin : "";
  const busy = /^(TRANSIENT)$/;
  const unsure = /^(upstream_error|upstream_timeout|in_progress|internal)$/;
  // A timer of more than 24 days would ring at once.
  const pause = ms => new Promise(done => setTimeout(done, Math.min(ms, 2e9)));
  const some = ms => Math.random() * ms;
  const now = () => performance.now();
  const wait = r => (r && Number(r.headers.get("Retry-After"))) * 1e3 || 0;
  const json = r => r.clone().json().then(a => a || {}).catch(() => ({}));

  function uuid() {
    // Secure contexts alone have it.
    if (crypto.randomUUID) return crypto.randomUUID();
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), b => (b + 256).toString(16).slice(1)).join("");
  }

  // sale watches one SKU. o: sku, url; init() = what fetch is given for the order; token, resend: true or false; spread in ms;
  // button; clock(ms left); on(state, detail), where state is one of waiting open paused unknown ordering queued checking
  // unsure done rejected sold_out ended.
  function sale(o) {
    const place = "sluice:" + o.sku, spread = o.spread === undefined ? 250 : o.spread;
    const sku = encodeURIComponent(o.sku);
    // Of the clock.
    let best = Infinity, taken = 0, offset = 0;
    let opens = 0, token = "", state = "", working = false, over = false;
    const clock = () => now() + offset;

    function set(next, detail) {
      state = next;
      if (o.button) o.button.disabled = next !== "open";
      if (o.on) o.on(next, detail || {});
    }

    // The key is kept until it is known what became of the order: the same order never gets another one.
    function kept(change) {
      let k = null;
      try {
        if (change !== undefined) change ? sessionStorage.setItem(place, JSON.stringify(change)) : sessionStorage.removeItem(place);
        k = JSON.parse(sessionStorage.getItem(place));
      } catch (e) {
        // No storage: for as long as the page is there.
        k = change;
      }
      return k;
    }

    // look asks what is left. Only a fresh answer tells the time, and the one with the smallest round trip tells it best; an old
    // one loses a millisecond of trust each second.
    async function look(fresh) {
      const from = now();
      const r = await fetch(home + "/.sluice/stock/" + sku + (fresh ? "?now=" + Math.random() + (o.token ? "&token=1" : "") : ""),
        { credentials: fresh && o.token ? "include" : "same-origin" });
      const to = now(), a = await r.json();
      if (!a.phase || !isFinite(a.server_time_ms)) throw r;
      if (fresh && to - from <= best + (to - taken) / 1e3) {
        best = to - from; taken = to;
        offset = a.server_time_ms - (from + to) / 2;
      }
      if (a.token) token = a.token;
      opens = +a.opens_at_ms || 0;
      return a;
    }

    async function watch() {
      const k = kept();
      // The page may have been loaded again meanwhile.
      if (k && k.sent) {
        working = true;
        await settle(k);
        working = false;
      }
      for (let n = 0; !over; n++) {
        let a, next = 2e3 + some(2e3);
        try { a = await look(n < 4 || opens > 0); } catch (e) {
          await pause(Math.max(wait(e.headers && e), next));
          continue;
        }
        if (a.phase === "waiting") {
          if (!working) set("waiting", a);
          next = opens ? Math.max(0, opens - clock()) : next;
          if (next && n < 4) next = Math.min(next, 200 + some(300));
          else if (next > 15e3) next = Math.min(next - 10e3, 20e3 + some(10e3));
          await pause(next);
          if (!opens || clock() < opens) continue;
          // Not all in the same instant.
          await pause(some(spread));
          if (o.token) await look(true).catch(() => {});
          opens = 0;
          if (!working && !over) set("open", a);
          next = 5e3 + some(3e3);
        } else {
          // Where all is merely sold, a unit may still come back.
          if (a.phase === "ended") over = a.left !== "none";
          if (!working && state !== a.phase) set(a.phase, a);
          if (a.phase === "open" || a.phase === "ended") next = 5e3 + some(3e3);
        }
        await pause(next);
      }
    }

    async function order() {
      if (working || state !== "open") return;
      working = true;
      const k = kept() || kept({ key: uuid() }) || { key: uuid() };
      try { await attempt(k); } finally { working = false; }
    }

    async function attempt(k) {
      for (let n = 0, last; n < 20 && !over; n++) {
        set("ordering");
        if (o.token && !token) await look(true).catch(() => {});
        const init = Object.assign({ method: "POST", credentials: "include" }, o.init && o.init());
        init.headers = Object.assign({ Accept: "application/json", "Idempotency-Key": k.key }, o.token && { "Sluice-Token": token }, init.headers);
        kept(k = { key: k.key, sent: 1 });
        let r = null;
        // Without an answer it is unknown whether it arrived.
        try { r = await fetch(o.url, init); } catch (e) {}
        const a = r ? await json(r) : {}, reason = r && (r.headers.get("X-Sluice-Reason") || r.status > 399 && a.reason || "");
        last = { reason: reason, answer: a, response: r };
        if (!r || unsure.test(reason) || !reason && r.status > 499) {
          if (await settle(k, last) !== "none") return;
        } else if (reason === "token") {
          token = "";
          await pause(some(500));
        } else if (busy.test(reason)) {
          kept(k = { key: k.key });
          set("queued", last);
          await pause(Math.max(wait(r), 500) + some(500));
        } else return end(reason === "confirmed" || !reason && r.ok ? "done" : reason === "not_started" ? "waiting" : reason === "sold_out" ? reason : "rejected", last);
      }
      if (!over) end("rejected", { reason: "busy", answer: {} });
    }

    // end is for good, but for what may come back: a start, a unit, or what the shop itself did not like.
    function end(how, detail) {
      kept(null);
      over = over || how === "done" || how === "rejected" && !!detail.reason && detail.reason !== "busy";
      set(how, detail);
    }

    // settle asks what became of an order of which no answer tells.
    async function settle(k, detail) {
      for (let n = 0; n < 40 && !over; n++) {
        set("checking", detail);
        let r = null, a = {};
        try {
          r = await fetch(home + "/.sluice/orders/" + encodeURIComponent(k.key) + "?sku=" + sku, { cache: "no-store" });
          a = await json(r);
        } catch (e) {}
        if (a.state === "sold") return end("done", { answer: a });
        if (a.state === "released" || a.state === "refunded") return end("rejected", { answer: a });
        // By the same key: where the gate reserves it takes it once.
        if (a.state === "none" && o.resend && n < 3) return "none";
        if (a.state === "none" || r && r.status === 404) break;
        await pause(Math.max(wait(r), Math.min(1e3 * Math.pow(2, n), 15e3)) + some(1e3));
      }
      set("unsure", detail);
    }

    if (o.button) o.button.disabled = true;
    const ticking = o.clock && setInterval(() => { if (state === "waiting" && opens) o.clock(Math.max(0, opens - clock())); }, 200);
    // A clock may have stood still while the page was hidden.
    w.addEventListener("visibilitychange", () => { best = Infinity; });
    watch();
    return { order: order, stop: () => { over = true; clearInterval(ticking); } };
  }

  function wire(f) {
    const find = name => f.querySelector("[data-sluice=" + name + "]"), time = find("time"), text = find("say"), data = f.dataset;
    const s = sale({
      sku: data.sluiceSku, url: f.action, token: "sluiceToken" in data, resend: "sluiceResend" in data,
      button: find("buy") || f.querySelector("[type=submit],button"),
      init: () => ({ method: "POST", body: new URLSearchParams(new FormData(f)) }),
      clock: ms => {
        const n = Math.ceil(ms / 1e3), two = x => ("0" + x).slice(-2), h = Math.floor(n / 3600);
        if (time) time.textContent = (h ? h + ":" : "") + two(Math.floor(n / 60) % 60) + ":" + two(n % 60);
      },
      on: (state, detail) => {
        data.state = state;
        f.querySelectorAll("[data-when]").forEach(e => { e.hidden = e.dataset.when.split(" ").indexOf(state) < 0; });
        const a = detail.answer || {};
        if (text && (a.detail || state === "ordering")) text.textContent = a.detail || "";
        f.dispatchEvent(new CustomEvent("sluice", { bubbles: true, detail: Object.assign({ state: state }, detail) }));
      },
    });
    f.addEventListener("submit", e => { e.preventDefault(); s.order(); });
  }

  w.Sluice = { sale: sale };
  const start = () => d.querySelectorAll("form[data-sluice-sku]").forEach(wire);
  d.readyState === "loading" ? d.addEventListener("DOMContentLoaded", start) : start();
})(window, document);
