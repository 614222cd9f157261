<?php
// Tells orders that the gateway signed from others: "ok" or "bad" for each line of its input. A line holds signature,
// method, target, serial, SKU, quantity and deadline, with tabs between them; what follows is ignored. PHP 7.4.
declare(strict_types=1);

// Whether $signature is that of the six fields under one of the keys. Of a request they are, in $_SERVER,
// REQUEST_METHOD, REQUEST_URI and, as text, HTTP_IDEMPOTENCY_KEY, HTTP_SLUICE_SKU, HTTP_SLUICE_QUANTITY and
// HTTP_SLUICE_DEADLINE; $signature is HTTP_SLUICE_SIGNATURE. Write ?? '' behind each: what is missing is not signed.
function verify(array $keys, string $signature, string $method, string $target, string $serial, string $sku,
    string $quantity, string $deadline): bool
{
    $text = implode("\n", ['v1', $method, $target, $serial, $sku, $quantity, $deadline]);
    $good = false;
    foreach ($keys as $key) {
        $want = 'v1=' . hash_hmac('sha256', $text, $key);
        if (hash_equals($want, $signature)) { // in constant time
            $good = true;
        }
    }
    return $good;
}

// The keys that count: the one that signs and, while it replaces another, that one.
function secrets(): array
{
    $keys = [];
    foreach (['SLUICE_SECRET', 'SLUICE_SECRET_OLD'] as $name) {
        $key = getenv($name);
        if ($key !== false && strlen($key) >= 16) { // anybody knows the empty key
            $keys[] = $key;
        }
    }
    return $keys;
}

$keys = secrets();
while (($line = fgets(STDIN)) !== false) {
    $f = explode("\t", rtrim($line, "\n"));
    $good = count($f) >= 7 && verify($keys, $f[0], $f[1], $f[2], $f[3], $f[4], $f[5], $f[6]);
    echo $good ? 'ok' : 'bad', "\n";
}
