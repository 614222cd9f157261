// Laws of the dashboard's parts that need no page. Run by dashboard_test.go, beside copies of the files of admin/web.

import assert from "node:assert/strict";

import { el, fill, setText, visible } from "./dom.js";
import { sorted, translated } from "./findings.js";
import { grown, last, per, spread, sum, take } from "./history.js";
import { additions } from "./once.js";
import { away, rest, stockNow } from "./pace.js";
import { shadeOf, shades } from "./shades.js";
import { alone, stack } from "./stack.js";
import { stopwatch } from "./stopwatch.js";
import { read, splitter } from "./stream.js";

const law = async (name, hold) => {
  await hold();
  console.log(`ok ${name}`);
};

const second = (at, more) => ({ at, span: 1, requests: 10, admitted: 1, rejected: {}, stock: [], ...more });

await law("events come whole, however the network cuts them", () => {
  const text = 'retry: 2000\n\n: hello\n\nevent: second\r\nid: 7\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: audit\ndata: {}\n\n';
  const want = [{ event: "second", id: "7", data: '{"a":\n1}' }, { event: "audit", id: "", data: "{}" }];
  for (let size = 1; size < text.length; size++) {
    const split = splitter(), got = [];
    for (let i = 0; i < text.length; i += size) got.push(...split(text.slice(i, i + size)));
    assert.deepEqual(got, want, `in pieces of ${size}`);
  }
});

await law("a stream that falls silent is given up", async () => {
  const stop = new AbortController();
  const body = new ReadableStream({ start(c) {
    c.enqueue(new TextEncoder().encode("data: 1\n\n"));
    stop.signal.addEventListener("abort", () => c.error(new Error("aborted")));
  } });
  const got = [];
  await assert.rejects(async () => {
    for await (const one of read({ body }, 20, () => stop.abort())) got.push(one.data);
  }, /aborted/);
  assert.deepEqual(got, ["1"]);
});

await law("history keeps ten minutes, in order, each second once", () => {
  assert.equal(take([second(1000), second(1001)]), true);
  assert.equal(take([second(1000), second(1001)]), false);
  assert.equal(grown(600), 60);
  assert.equal(take([second(1003)]), true);
  const { at, places } = spread(4);
  assert.deepEqual(at, [1000, 1001, 1002, 1003]);
  assert.deepEqual(places.map((p) => p && p.at), [1000, 1001, null, 1003], "a second without a message is a gap");
  assert.equal(take([second(1002)]), false);
  assert.deepEqual(spread(4).places.map((p) => p.at), [1000, 1001, 1002, 1003], "what comes late has its place");
  take([second(5000)]);
  assert.equal(last(), 5000);
  assert.equal(spread(600).places.filter(Boolean).length, 1);
});

await law("a second of a busy machine covers those before it", () => {
  take([second(5004, { span: 3, requests: 30 })]);
  const { places } = spread(5);
  assert.deepEqual(places.map((p) => p && p.at), [5000, null, 5004, 5004, 5004]);
  assert.equal(per(places[4], places[4].requests), 10);
});

await law("what is stacked adds up, and a gap stays a gap", () => {
  const lines = [{ shape: "stack" }, { shape: "stack" }, { shape: "line" }];
  assert.deepEqual(stack(lines, [[1, null, 3], [10, null, 30], [7, null, 9]]), [[1, null, 3], [11, null, 33], [7, null, 9]]);
  assert.deepEqual(alone([null, 1, null, 2, 3, null, 4], "line"), [1, 6]);
  assert.deepEqual(alone([null, 1, null], "stack"), []);
  assert.equal(sum({ a: 1, b: 2 }), 3);
});

await law("the estimate goes by the pace since something was sold", () => {
  const stock = (sold, free) => ({ stock: [{ sku: "1", total: 100, held: 0, sold, free }] });
  const waiting = Array.from({ length: 20 }, (_, i) => second(100 + i, stock(0, 100)));
  assert.equal(rest(waiting, "1"), null);
  const places = [...waiting, second(120, stock(10, 90)), null, second(122, stock(30, 70))];
  assert.deepEqual(rest(places, "1"), { pace: 10, ms: 7000 });
  assert.equal(rest([...places, second(123, stock(100, 0))], "1"), null, "what is gone has no estimate");
  assert.equal(rest(places, "2"), null);
});

await law("no two reasons have the same lightness beside each other, or the same colour", () => {
  const all = Object.values(shades);
  assert.equal(new Set(all.map(String)).size, all.length);
  assert.equal(new Set(all.map(([, , light]) => light)).size, all.length, "lightness alone tells them");
  all.slice(1).forEach(([, , light], i) => assert.ok(Math.abs(light - all[i][2]) >= 6, `${Object.keys(shades)[i]} and the next one`));
});

await law("a reason that is not listed has a colour of its own", () => {
  const all = Object.values(shades).map(String);
  for (const reason of ["user_orders", "region"]) assert.ok(!all.includes(String(shadeOf(reason))));
  assert.notDeepEqual(shadeOf("user_orders"), shadeOf("region"));
  assert.equal(shadeOf("rate"), shades.rate);
});

await law("numbers grow old, whatever happens to the clocks", () => {
  let wall = 1e12, steady = 5000;
  const since = stopwatch(() => wall, () => steady);
  assert.equal(since.read(), Infinity);
  since.start();
  wall -= 3600_000; // the clock is set back
  steady += 4000;
  assert.equal(since.read(), 4000);
  since.start();
  wall += 7200_000; // the machine slept
  assert.equal(since.read(), 7200_000);
  since.clear();
  assert.equal(since.read(), Infinity);
});

await law("an addition that is sent again has the same name, and no other has it", () => {
  const one = additions(), other = additions();
  assert.deepEqual(one(100), one(100));
  for (const key of [one(-100), one(50), other(100)]) assert.notDeepEqual(one(100), key);
  assert.match(one(100)["Idempotency-Key"], /^[!-~]{1,128}$/);
});

await law("stock that Redis does not confirm is not of now", () => {
  const stock = [{ sku: "1", total: 9, held: 0, sold: 2, free: 7 }];
  const up = second(1, { stock, redis: { up: true } }), gone = second(2, { stock, redis: { up: false } }), memory = second(3, { stock, redis: null });
  assert.deepEqual([up, gone, memory].map((s) => stockNow(s, "1")?.free), [7, undefined, 7]);
  assert.deepEqual([up, gone, memory, undefined].map(away), [false, true, false, false]);
  assert.equal(rest([second(1, { stock: [{ ...stock[0], sold: 0, free: 9 }], redis: { up: true } }), gone], "1"), null);
});

await law("no name reorders what is shown", () => {
  const name = "1001\u202e\u2066\u200f\u061c";
  const escaped = "1001\\u202e\\u2066\\u200f\\u061c";
  assert.equal(visible(name), escaped);
  assert.equal(visible("王小明 שלום"), "王小明 שלום");
  const made = { children: [], append(...c) { this.children.push(...c); }, replaceChildren(...c) { this.children = c; },
    setAttribute(n, v) { this[n] = v; }, title: "", value: "", textContent: "" };
  globalThis.document = { createElement: () => made };
  el("b", { title: name, "aria-label": name, value: name }, name);
  assert.deepEqual([made.title, made["aria-label"], made.value, made.children], [escaped, escaped, name, [escaped]]);
  fill(made, name);
  setText(made, name);
  assert.deepEqual([made.children, made.textContent], [[escaped], escaped]);
});

await law("a finding is translated with what it holds, and else stays as it is", () => {
  const by = sorted({ "%d of %d up": "{2} 个中 {1} 个", "cannot reach %s; %s": "无法连接 {1}；{2}", "it is down (%s)": "不可用 ({1})", "upstream: %s": "上游：{1}",
    "%v; start it": "报错：{1}；请启动", "ask %s: %s": "访问 {=1} 时 {=2}", "%s, or %s": "{1} 或 {2}" });
  assert.equal(translated("upstream: 1 of 2 up", by), "上游：2 个中 1 个");
  assert.equal(translated("cannot reach redis.example:6379; 1 of 2 up", by), "无法连接 redis.example:6379；2 个中 1 个");
  assert.equal(translated("it is down (a.b)", by), "不可用 (a.b)");
  assert.equal(translated("something else", by), "something else");
  assert.equal(translated("ask a:1: LOADING one, or 1 of 2 up; start it", by), "报错：访问 a:1 时 LOADING one, or 1 of 2 up；请启动");
});
