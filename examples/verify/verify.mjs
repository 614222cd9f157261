// Tells orders that the gateway signed from others: "ok" or "bad" for each line of its input. A line holds signature,
// method, target, serial, SKU, quantity and deadline, with tabs between them; what follows is ignored. Node 18.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createInterface } from 'node:readline';

// Whether signature is that of the six fields under one of the keys. Of a request they are req.method, req.url (in
// Express req.originalUrl) and, as text, the headers idempotency-key, sluice-sku, sluice-quantity and
// sluice-deadline. Node reads a header's bytes as Latin-1.
function verify(keys, signature, method, target, serial, sku, quantity, deadline) {
  const text = Buffer.from(['v1', method, target, serial, sku, quantity, deadline].join('\n'), 'latin1');
  const got = Buffer.from(signature ?? '', 'latin1');
  let good = false;
  for (const key of keys) {
    const want = Buffer.from('v1=' + createHmac('sha256', key).update(text).digest('hex'), 'latin1');
    if (got.length === want.length && timingSafeEqual(got, want)) {
      good = true;
    }
  }
  return good;
}

// The keys that count: the one that signs and, while it replaces another, that one.
function secrets() {
  const keys = [process.env.SLUICE_SECRET, process.env.SLUICE_SECRET_OLD];
  return keys.filter((key) => key !== undefined && key.length >= 16); // anybody knows the empty key
}

const keys = secrets();
for await (const line of createInterface({ input: process.stdin.setEncoding('latin1') })) {
  const f = line.split('\t');
  console.log(f.length >= 7 && verify(keys, ...f.slice(0, 7)) ? 'ok' : 'bad');
}
