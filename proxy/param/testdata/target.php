<?php // prints the path of each target on its input, as parse_url reads it
while (($target = fgets(STDIN)) !== false) {
    $path = parse_url(rtrim($target, "\n"), PHP_URL_PATH);
    echo is_string($path) ? $path : '!', "\n";
}
