// The HTTP cache tests of Mark Nottingham (cache-tests.fyi), the required ones, against a page cache.
//
//	node cache.mjs serve PORT   the server that the cache stands in front of
//	node cache.mjs URL          the tests
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const home = join(process.cwd(), 'node_modules', 'http-cache-tests')
const load = path => import(pathToFileURL(join(home, path)))

// What this cache does otherwise, and why. A test that is not named here must pass.
const others = [
  [/^age-parse-(nonnumeric|negative|float|parameter|numeric-parameter|dup-0|dup-0-twoline|dup-old|prefix-twoline)$/,
    'of a list of ages the first counts, and one that is no number does not (RFC 9111, section 5.1)'],
  [/^stale-close-/, 'its 502 is no stale response, but lacks the field by which the test tells'],
  [/Set-Cookie$/, 'a response that sets a cookie is not kept'],
  [/-store-Transfer-Encoding$/, 'a response with an unknown coding is rejected'],
  [/-update-response-Content-Type$/, 'the type stays that of the body that is kept'],
  [/-update-response-ETag$/, 'a 304 about another body does not count'],
  [/^invalidate-.*-(location|cl)$/, 'only the page itself is dropped; others may be (RFC 9111, section 4.4)'],
  [/^partial-/, 'parts are asked of the shop'],
  [/^surrogate-append-capabilities$/, 'CDN-Cache-Control needs no announcement']
]

async function serve (port) {
  Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: port, npm_config_pidfile: 'server.pid' })
  await load('server/server.mjs')
}

async function run (url) {
  const fetch = (await import(pathToFileURL(join(process.cwd(), 'node_modules', 'node-fetch', 'lib', 'index.mjs')))).default
  const { runTests, getResults } = await load('client/runner.mjs')
  const suites = (await load('tests/index.mjs')).default
  const surrogate = JSON.stringify((await load('tests/surrogate-control.mjs')).default)
  suites.push(JSON.parse(surrogate.replaceAll('Surrogate-Control', 'CDN-Cache-Control'))) // its successor, RFC 9213
  console.log('version http-cache-tests', JSON.parse(readFileSync(join(home, 'package.json'))).version)
  await runTests(suites, fetch, false, url)
  const results = getResults()
  for (const test of suites.flatMap(suite => suite.tests)) {
    if (test.browser_only || (test.kind ?? 'required') !== 'required') continue
    const why = others.find(([id]) => id.test(test.id))
    if (results[test.id] === true) console.log('ok', test.id)
    else if (why) console.log('differs', test.id, why[1])
    else console.log(`FAIL ${test.id}: ${test.name}: ${results[test.id]}`)
  }
}

const [what, port] = process.argv.slice(2)
await (what === 'serve' ? serve(port) : run(what))
