-- +goose Up
-- How far the database is with one ledger. The row is the lock, the position, and the proof that it is the same history.
-- Text that is not valid UTF-8, or has a NUL, is stored as \x and its bytes in hexadecimal: sku, serial.
CREATE TABLE sluice_cursor (
  target      varchar(32)  COLLATE "C" NOT NULL,
  sku         varchar(514) COLLATE "C" NOT NULL,
  born        bigint NOT NULL,        -- the ledger's first epoch: a SKU that is sold again has another ledger
  epoch       bigint NOT NULL,        -- epoch and ver: the last entry that is settled
  ver         bigint NOT NULL,
  fingerprint bytea  NOT NULL,        -- of that entry: ids come again when Redis loses its tail
  total       bigint NOT NULL,        -- total, held, sold, state: the ledger's numbers at that entry
  held        bigint NOT NULL,
  sold        bigint NOT NULL,
  state       varchar(16) NOT NULL,
  deducted    bigint NOT NULL,        -- units by which the stock table was lowered for this ledger
  changed     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (target, sku));

-- Every order that a ledger has known: the table against duplicates, and the archive.
CREATE TABLE sluice_order (
  sku      varchar(514) COLLATE "C" NOT NULL,
  born     bigint       NOT NULL,
  serial   varchar(258) COLLATE "C" NOT NULL,
  buyer    bytea  NOT NULL,           -- any bytes
  quantity bigint NOT NULL CHECK (quantity >= 0),
  status   char(1) NOT NULL CHECK (status IN ('H','C','X','R')),
  counted  bigint NOT NULL DEFAULT 0, -- units that the order used up before its last change
  epoch    bigint NOT NULL,           -- epoch and ver: the change that said so; an older one changes nothing
  ver      bigint NOT NULL,
  at       bigint NOT NULL,           -- Unix ms
  missing  timestamptz,               -- since when the ledger does not know it
  PRIMARY KEY (sku, born, serial)) WITH (fillfactor = 80);

-- The units that are left, where the shop has no table of its own.
CREATE TABLE sluice_stock (
  sku varchar(514) COLLATE "C" PRIMARY KEY,
  num bigint NOT NULL CHECK (num >= 0));

-- What an operator must look at.
CREATE TABLE sluice_conflict (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  target varchar(32)  NOT NULL,
  sku    varchar(514) NOT NULL,
  epoch  bigint NOT NULL,
  ver    bigint NOT NULL,
  kind   varchar(32) NOT NULL,        -- "stock" "entry" "missing" "lost"
  detail text NOT NULL,
  found  timestamptz NOT NULL DEFAULT now(),
  solved timestamptz,
  UNIQUE (target, sku, epoch, ver, kind));
