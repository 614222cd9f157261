<?php // answers what PHP has under the name goods_id
$value = ($_REQUEST + $_COOKIE)['goods_id'] ?? '';
echo is_array($value) ? 'list' : $value;
