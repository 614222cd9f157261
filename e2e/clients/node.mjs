// undici, axios and Node's own http against a gate: node node.mjs BASE, in a folder with undici and axios in node_modules.
import { createHash, randomBytes } from 'node:crypto'
import http from 'node:http'
import { createRequire } from 'node:module'
const require = createRequire(process.cwd() + '/')
const undici = require('undici'), axios = require('axios')
const base = process.argv[2], order = base + '/api/seckill/1001/order', sold = base + '/api/seckill/2002/order'

console.log(`version node ${process.versions.node}, undici ${require('undici/package.json').version}, axios ${require('axios/package.json').version}`)
const check = async (name, got, want) => {
	try {
		got = await got()
		console.log(`${got}` === `${want}` ? `ok ${name}` : `FAIL ${name}: got ${`${got}`.slice(0, 300)}, want ${want}`)
	} catch (e) {
		console.log(`FAIL ${name}: ${e} ${e.cause ?? ''}`)
	}
}
const sha = b => createHash('sha256').update(b).digest('hex')
const large = randomBytes(64 << 20), told = b => `${b.length} ${sha(b)}`
async function* pieces(b) { for (let i = 0; i < b.length; i += 1 << 16) yield b.subarray(i, i + (1 << 16)) }

// Each library as one function: ask(method, url, {headers, body}) -> {status, headers, body}.
const pool = new undici.Pool(base, { connections: 1, pipelining: 1 })
const ways = {
	async undici(method, url, { headers, body } = {}) {
		const r = await pool.request({ method, path: url.slice(base.length), headers, body })
		return { status: r.statusCode, headers: r.headers, body: Buffer.from(await r.body.arrayBuffer()) }
	},
	async fetch(method, url, { headers, body } = {}) {
		const r = await fetch(url, { method, headers, body, duplex: 'half' })
		return { status: r.status, headers: Object.fromEntries(r.headers), body: Buffer.from(await r.arrayBuffer()) }
	},
	async axios(method, url, { headers, body } = {}) {
		const agent = ways.agent ??= new http.Agent({ keepAlive: true, maxSockets: 1 })
		const data = body?.[Symbol.asyncIterator] && !Buffer.isBuffer(body) ? (await import('node:stream')).Readable.from(body) : body
		const r = await axios.request({ method, url, headers, data, httpAgent: agent, responseType: 'arraybuffer', validateStatus: null, maxRedirects: 0, maxBodyLength: Infinity })
		return { status: r.status, headers: r.headers, body: Buffer.from(r.data) }
	},
}
const clients = Object.entries(ways)
for (const [name, ask] of clients) {
	const c = (what, got, want) => check(`${name}: ${what}`, got, want)
	await c('GET', async () => (await ask('GET', base + '/page')).body, 'page')
	await c('POST', async () => (await ask('POST', base + '/echo', { body: Buffer.from('hello') })).body, told(Buffer.from('hello')))
	await c('64 MiB up', async () => (await ask('PUT', base + '/echo', { body: large })).body, told(large))
	await c('64 MiB up in chunks', async () => (await ask('PUT', base + '/echo', { body: name === 'fetch' ? ReadableStream.from(pieces(large)) : pieces(large) })).body, told(large))
	await c('64 MiB down', async () => { const r = await ask('GET', base + '/bytes?n=67108864'); return sha(r.body) === r.headers['x-sha256'] }, true)
	await c('64 MiB down in chunks', async () => { const r = await ask('GET', base + '/bytes?n=67108864&chunked'); return sha(r.body) === r.headers['x-sha256'] }, true)
	await c('409 is readable', async () => { const r = await ask('POST', sold, { body: Buffer.from('{}') }); return [r.status, r.headers['x-sluice-reason'], JSON.parse(r.body).reason] }, '409,sold_out,sold_out')
	await c('HEAD', async () => { const r = await ask('HEAD', base + '/page'); return [r.status, r.headers['content-length'], r.body.length] }, '200,4,0')
	await c('204', async () => { const r = await ask('GET', base + '/empty'); return [r.status, r.body.length] }, '204,0')
	await c('304', async () => { const r = await ask('GET', base + '/page', { headers: { 'if-none-match': '"page"' } }); return [r.status, r.body.length] }, '304,0')
}
await check('fetch: SSE', async () => {
	const r = (await fetch(base + '/sse')).body.pipeThrough(new TextDecoderStream()).getReader()
	const first = (await r.read()).value
	await fetch(base + '/sse/next')
	let rest = ''
	for (let p; !(p = await r.read()).done;) rest += p.value
	return first + rest
}, 'data: 1\n\ndata: 2\n\n')
await check('node:http: Expect: 100-continue is answered before the body is sent', () => new Promise((done, failed) => {
	let said = false
	const r = http.request(base + '/echo', { method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 5 } }, a => { let b = ''; a.on('data', d => b += d).on('end', () => done(said && b)) })
	r.on('continue', () => { said = true; r.end('hello') }).on('error', failed).flushHeaders()
}), told(Buffer.from('hello')))
await check('node:http: a rejected order is not told to go on', () => new Promise((done, failed) => {
	const r = http.request(sold, { method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 5 } }, a => { a.resume(); done(a.statusCode); r.destroy() })
	r.on('continue', () => done('continue')).on('error', failed).flushHeaders()
}), 409)
// A connection at its limit is of no use to the other checks.
for (const [name, ask] of clients) {
	await check(name + ': 429 is readable', async () => { let r; for (let i = 0; i < 200 && r?.status !== 429; i++) r = await ask('POST', order, { body: Buffer.from('{}') }); return [r.status, r.headers['x-sluice-reason'], r.headers['retry-after'] > 0, JSON.parse(r.body).reason] }, '429,conn_rate,true,conn_rate')
}
pool.close()
ways.agent?.destroy()
