<?php
// PHP's curl and its http:// streams against a gate: php client.php BASE.
$base = $argv[1];
$version = curl_version();
echo "version php " . PHP_VERSION . ", libcurl {$version['version']}\n";

function check(string $name, mixed $got, mixed $want): void {
	echo $got === $want ? "ok $name\n" : "FAIL $name: got " . substr(json_encode($got), 0, 300) . ', want ' . json_encode($want) . "\n";
}
function told(string $b): string { return strlen($b) . ' ' . hash('sha256', $b); }

// One handle for all requests, so that its connection is used again.
$handle = curl_init();
function ask(string $method, string $path, ?string $body = null, array $headers = [], array $more = []): array {
	global $base, $handle;
	$fields = [];
	curl_reset($handle);
	curl_setopt_array($handle, $more + [CURLOPT_URL => $base . $path, CURLOPT_CUSTOMREQUEST => $method, CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 60,
		CURLOPT_HTTPHEADER => $headers, CURLOPT_NOBODY => $method === 'HEAD',
		CURLOPT_HEADERFUNCTION => function ($h, $line) use (&$fields) { [$n, $v] = explode(':', $line, 2) + [1 => '']; $fields[strtolower($n)] = trim($v); return strlen($line); }]);
	if ($body !== null) curl_setopt($handle, CURLOPT_POSTFIELDS, $body);
	$text = curl_exec($handle);
	return [curl_getinfo($handle, CURLINFO_RESPONSE_CODE), $fields, $text === false ? curl_error($handle) : $text, curl_getinfo($handle, CURLINFO_NUM_CONNECTS)];
}
$large = random_bytes(64 << 20);
check('curl: GET', ask('GET', '/page')[2], 'page');
check('curl: POST', ask('POST', '/echo', 'hello')[2], told('hello'));
check('curl: keep-alive', ask('GET', '/page')[3], 0);
check('curl: 64 MiB up, with Expect', ask('POST', '/echo', $large, ['Expect: 100-continue'])[2], told($large));
$in = fopen('php://temp', 'r+');
fwrite($in, $large);
rewind($in);
check('curl: 64 MiB up in chunks', ask('PUT', '/echo', null, ['Transfer-Encoding: chunked'], [CURLOPT_UPLOAD => true, CURLOPT_INFILE => $in])[2], told($large));
foreach (['/bytes?n=67108864', '/bytes?n=67108864&chunked'] as $path) {
	$r = ask('GET', $path);
	check("curl: 64 MiB down, $path", hash('sha256', $r[2]), $r[1]['x-sha256']);
}
$r = ask('POST', '/api/seckill/2002/order', '{}');
check('curl: 409 is readable', [$r[0], $r[1]['x-sluice-reason'], json_decode($r[2])->reason], [409, 'sold_out', 'sold_out']);
$r = ask('HEAD', '/page');
check('curl: HEAD', [$r[0], $r[1]['content-length'], $r[2]], [200, '4', '']);
check('curl: 204', array_slice(ask('GET', '/empty'), 0, 1), [204]);
check('curl: 304', ask('GET', '/page', null, ['If-None-Match: "page"'])[0], 304);

$s = fopen($base . '/sse', 'r');
$first = fgets($s);
ask('GET', '/sse/next');
check('stream: SSE', $first . stream_get_contents($s), "data: 1\n\ndata: 2\n\n");
$context = stream_context_create(['http' => ['method' => 'POST', 'content' => '{}', 'header' => 'Content-Type: application/json', 'ignore_errors' => true, 'protocol_version' => 1.0]]);
$text = file_get_contents($base . '/api/seckill/2002/order', false, $context);
check('stream: 409 on HTTP/1.0 is readable', [explode(' ', $http_response_header[0])[1], json_decode($text)->reason], ['409', 'sold_out']);
for ($i = 0; $i < 60 && $r[0] != 429; $i++) $r = ask('POST', '/api/seckill/1001/order', '{}');
check('curl: 429 is readable', [$r[0], $r[1]['x-sluice-reason'], $r[1]['retry-after'] > 0], [429, 'conn_rate', true]);
