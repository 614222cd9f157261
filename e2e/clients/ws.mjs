// npm's ws through a gate. node ws.mjs serve: a server that echoes; it prints its port. node ws.mjs BASE: a client.
import { createRequire } from 'node:module'
import { randomBytes } from 'node:crypto'
const require = createRequire(process.cwd() + '/')
const { WebSocket, WebSocketServer } = require('ws')

if (process.argv[2] === 'serve') {
	const s = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload: 64 << 20 }, () => console.log(s.address().port))
	s.on('connection', c => c.on('message', (m, binary) => c.send(m, { binary })).on('ping', () => {}))
} else {
	const url = process.argv[2].replace('http', 'ws') + '/socket'
	console.log(`version ws ${require('ws/package.json').version}`)
	const check = async (name, got, want) => {
		try {
			got = await got()
			console.log(got === want ? `ok ${name}` : `FAIL ${name}: got ${got}, want ${want}`)
		} catch (e) {
			console.log(`FAIL ${name}: ${e}`)
		}
	}
	const open = () => new Promise((done, failed) => { const c = new WebSocket(url, { perMessageDeflate: true, maxPayload: 64 << 20 }); c.on('open', () => done(c)).on('error', failed) })
	const next = c => new Promise((done, failed) => c.once('message', done).once('close', () => failed(new Error('closed'))))
	await check('1000 messages come back in order', async () => {
		const c = await open()
		let at = 0
		const all = new Promise(done => c.on('message', m => { if (`${m}` !== `message ${at++}`) done(`${m} at ${at}`); if (at === 1000) done('all') }))
		for (let i = 0; i < 1000; i++) c.send(`message ${i}`)
		const r = await all
		c.close()
		return r
	}, 'all')
	await check('16 MiB come back whole', async () => {
		const c = await open(), b = randomBytes(16 << 20)
		c.send(b)
		const m = await next(c)
		c.close()
		return b.equals(m)
	}, true)
	await check('a ping is answered', async () => { const c = await open(); const p = new Promise(d => c.on('pong', m => d(`${m}`))); c.ping('hi'); const r = await p; c.close(); return r }, 'hi')
	await check('the closing handshake ends with its code', async () => { const c = await open(); const p = new Promise(d => c.on('close', d)); c.close(4321); return await p }, 4321)
	await check('200 sockets at once', async () => {
		const all = await Promise.all(Array.from({ length: 200 }, open))
		const got = await Promise.all(all.map((c, i) => { c.send(`${i}`); return next(c) }))
		all.forEach(c => c.close())
		return got.every((m, i) => `${m}` === `${i}`)
	}, true)
	await check('an upgrade of an order is rejected', () => new Promise(done => {
		const c = new WebSocket(process.argv[2].replace('http', 'ws') + '/api/seckill/1001/order')
		c.on('unexpected-response', (_, r) => { done(r.statusCode); c.terminate() }).on('open', () => done('open')).on('error', () => {})
	}), 400)
}
