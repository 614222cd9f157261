-- +goose Up
-- How far the database is with one ledger. The row is the lock, the position, and the proof that it is the same history.
-- Text that is not valid UTF-8, or has a NUL, is stored as \x and its bytes in hexadecimal: sku, serial. The columns
-- are bytes, since text would be compared without regard to spaces at its end.
CREATE TABLE sluice_cursor (
  target      varbinary(32)  NOT NULL,
  sku         varbinary(514) NOT NULL,
  born        bigint NOT NULL COMMENT 'the first epoch of the ledger: a SKU that is sold again has another ledger',
  epoch       bigint NOT NULL COMMENT 'epoch and ver: the last entry that is settled',
  ver         bigint NOT NULL,
  fingerprint varbinary(8) NOT NULL COMMENT 'of that entry: ids come again when Redis loses its tail',
  total       bigint NOT NULL COMMENT 'total, held, sold, state: the numbers of the ledger at that entry',
  held        bigint NOT NULL,
  sold        bigint NOT NULL,
  state       varchar(16) NOT NULL,
  deducted    bigint NOT NULL COMMENT 'units by which the stock table was lowered for this ledger',
  changed     timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (target, sku)) ENGINE = InnoDB;

-- Every order that a ledger has known: the table against duplicates, and the archive.
CREATE TABLE sluice_order (
  sku      varbinary(514) NOT NULL,
  born     bigint         NOT NULL,
  serial   varbinary(258) NOT NULL,
  buyer    mediumblob NOT NULL COMMENT 'any bytes',
  quantity bigint NOT NULL CHECK (quantity >= 0),
  status   char(1) CHARACTER SET ascii NOT NULL CHECK (status IN ('H','C','X','R')),
  epoch    bigint NOT NULL COMMENT 'epoch and ver: the change that said so; an older one changes nothing',
  ver      bigint NOT NULL,
  at       bigint NOT NULL COMMENT 'Unix ms',
  missing  timestamp(6) NULL COMMENT 'since when the ledger does not know it',
  PRIMARY KEY (sku, born, serial)) ENGINE = InnoDB;

-- The units that are left, where the shop has no table of its own.
CREATE TABLE sluice_stock (
  sku varbinary(514) PRIMARY KEY,
  num bigint NOT NULL CHECK (num >= 0)) ENGINE = InnoDB;

-- What an operator must look at.
CREATE TABLE sluice_conflict (
  id     bigint AUTO_INCREMENT PRIMARY KEY,
  target varbinary(32)  NOT NULL,
  sku    varbinary(514) NOT NULL,
  epoch  bigint NOT NULL,
  ver    bigint NOT NULL,
  kind   varchar(32) NOT NULL COMMENT 'stock, entry, missing, lost',
  detail mediumtext CHARACTER SET utf8mb4 NOT NULL,
  found  timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  solved timestamp(6) NULL,
  UNIQUE KEY sluice_conflict_place (target, sku, epoch, ver, kind)) ENGINE = InnoDB;
