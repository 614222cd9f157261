// A shop behind Sluice in Node, without a framework so that it runs as it is; README.md has the same for Express. It
// verifies that the gate has taken the unit, makes each order once, and says what became of it.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const key = (process.env.SLUICE_SECRET ?? '').trim();
if (key.length < 16) throw new Error('SLUICE_SECRET: the line of stock.reserve.secret_file, at least 16 bytes');
const orders = new Map(); // by serial; in a database: a column with a unique index

// Whether the gate holds the units that the request names. In Express: req.originalUrl for req.url.
export function signed(req) {
  const h = req.headers;
  const text = ['v1', req.method, req.url, h['idempotency-key'], h['sluice-sku'], h['sluice-quantity'], h['sluice-deadline']].join('\n');
  const want = Buffer.from('v1=' + createHmac('sha256', key).update(Buffer.from(text, 'latin1')).digest('hex'));
  const got = Buffer.from(h['sluice-signature'] ?? '');
  return got.length === want.length && timingSafeEqual(got, want);
}

function order(req, res) {
  if (!signed(req)) return res.writeHead(403).end('not from the gate\n');
  const h = req.headers;
  const serial = h['idempotency-key'];
  const what = `${h['sluice-quantity']} of ${h['sluice-sku']}`;
  const known = orders.get(serial);
  if (known === undefined ? Date.now() > Number(h['sluice-deadline']) : known !== what) {
    // There is no order, and there will be none: the units go back on sale.
    return res.writeHead(409, { 'Sluice-Order': 'released' }).end('too late\n');
  }
  orders.set(serial, what); // once, whatever comes again
  res.writeHead(200, { 'Sluice-Order': 'confirmed' }).end(`ordered ${what}\n`);
}

const server = createServer((req, res) => {
  const path = req.url.split('?')[0];
  if (req.method === 'POST' && /^\/api\/seckill\/[^/]+\/order$/.test(path)) {
    req.resume().on('end', () => order(req, res));
  } else if (path.startsWith('/orders/by-serial/')) {
    // What the gate asks when an answer was lost: 200 = there is an order, 404 = there is none.
    res.writeHead(orders.has(decodeURIComponent(path.slice('/orders/by-serial/'.length))) ? 200 : 404).end();
  } else {
    res.writeHead(404).end();
  }
});
server.keepAliveTimeout = 75_000; // above upstream.idle_conn_timeout: Node's 5 s is too near to its 4 s
server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1');
