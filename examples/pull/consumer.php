<?php
// Takes orders that wait from Sluice at its own pace, makes them, and says what became of each: docs/queue.md.
//   SLUICE_URL=http://127.0.0.1:8090 SLUICE_TOKEN=… php consumer.php

function call(string $what, array $body): ?array {
    $context = stream_context_create(['http' => ['method' => 'POST', 'content' => json_encode($body), 'timeout' => 10,
        'header' => ['Authorization: Bearer ' . getenv('SLUICE_TOKEN'), 'Content-Type: application/json']]]);
    $text = @file_get_contents(getenv('SLUICE_URL') . "/api/v1/queue/$what", false, $context);
    return $text === false ? null : json_decode($text, true);
}

// Makes an order in the shop: never after its deadline, and once for each serial.
function place(array $o): array {
    $said = ['sku' => $o['sku'], 'serial' => $o['serial'], 'receipt' => $o['receipt']];
    if (time() > strtotime($o['deadline'])) {
        return $said + ['outcome' => 'again']; // certainly not made
    }
    // INSERT INTO orders (serial, …) … ON CONFLICT (serial) DO NOTHING; base64_decode($o['body']) is what the client sent
    return $said + ['outcome' => 'confirmed', 'answer' => ['status' => 201,
        'headers' => ['Content-Type' => 'application/json'],
        'body' => base64_encode(json_encode(['order' => $o['serial']]))]];
}

while (true) {
    $orders = call('take', ['n' => 20, 'lease' => '30s'])['orders'] ?? [];
    $outcomes = array_map('place', $orders);
    while ($outcomes && call('settle', ['orders' => $outcomes]) === null) { // may be repeated: it is done once
        sleep(1);
    }
    if (!$orders) {
        if (getenv('SLUICE_ONCE')) {
            break;
        }
        usleep(500000);
    }
}
