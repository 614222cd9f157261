-- +goose Up
-- Orders that the shop gives back: it inserts sku and serial in the transaction that cancels the order.
CREATE TABLE sluice_giveback (
  id      bigint AUTO_INCREMENT PRIMARY KEY,
  sku     varbinary(514) NOT NULL,
  serial  varbinary(258) NOT NULL,
  asked   bigint NOT NULL DEFAULT (CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED)) COMMENT 'Unix ms, as due and done',
  due     bigint NOT NULL DEFAULT 0 COMMENT 'when it is tried next',
  tries   bigint NOT NULL DEFAULT 0,
  done    bigint NULL,
  outcome varchar(32) NULL COMMENT 'refunded, released',
  UNIQUE KEY sluice_giveback_order (sku, serial),
  KEY sluice_giveback_due (done, due)) ENGINE = InnoDB;
