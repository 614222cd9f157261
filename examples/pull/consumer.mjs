// Takes orders that wait from Sluice at its own pace, makes them, and says what became of each: docs/queue.md.
//   SLUICE_URL=http://127.0.0.1:8090 SLUICE_TOKEN=… node consumer.mjs
const { SLUICE_URL, SLUICE_TOKEN, SLUICE_ONCE } = process.env
const sleep = ms => new Promise(done => setTimeout(done, ms))

async function call(what, body) {
  const r = await fetch(`${SLUICE_URL}/api/v1/queue/${what}`, { method: 'POST', body: JSON.stringify(body),
    headers: { Authorization: `Bearer ${SLUICE_TOKEN}`, 'Content-Type': 'application/json' } })
  if (!r.ok) throw new Error(`${what}: ${r.status} ${await r.text()}`)
  return r.json()
}

// Makes an order in the shop: never after its deadline, and once for each serial.
async function place({ sku, serial, receipt, deadline, body }) {
  if (Date.now() > Date.parse(deadline)) return { sku, serial, receipt, outcome: 'again' } // certainly not made
  // INSERT INTO orders (serial, …) … ON CONFLICT (serial) DO NOTHING; Buffer.from(body, 'base64') is what the client sent
  const text = JSON.stringify({ order: serial })
  return { sku, serial, receipt, outcome: 'confirmed', answer: { status: 201,
    headers: { 'Content-Type': 'application/json' }, body: Buffer.from(text).toString('base64') } }
}

for (;;) {
  const { orders } = await call('take', { n: 20, lease: '30s' }).catch(e => (console.error(e.message), { orders: [] }))
  const outcomes = await Promise.all(orders.map(place))
  while (outcomes.length) {
    try {
      await call('settle', { orders: outcomes }) // may be repeated: it is done once
      break
    } catch (e) {
      console.error(e.message)
      await sleep(1000)
    }
  }
  if (!orders.length) {
    if (SLUICE_ONCE) break
    await sleep(500)
  }
}
