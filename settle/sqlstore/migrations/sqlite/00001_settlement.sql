-- +goose Up
-- How far the database is with one ledger. The row is the position, and the proof that it is the same history.
-- Text that is not valid UTF-8, or has a NUL, is stored as \x and its bytes in hexadecimal: sku, serial.
CREATE TABLE sluice_cursor (
  target      text    NOT NULL,
  sku         text    NOT NULL,
  born        integer NOT NULL,        -- the ledger's first epoch: a SKU that is sold again has another ledger
  epoch       integer NOT NULL,        -- epoch and ver: the last entry that is settled
  ver         integer NOT NULL,
  fingerprint blob    NOT NULL,        -- of that entry: ids come again when Redis loses its tail
  total       integer NOT NULL,        -- total, held, sold, state: the ledger's numbers at that entry
  held        integer NOT NULL,
  sold        integer NOT NULL,
  state       text    NOT NULL,
  deducted    integer NOT NULL,        -- units by which the stock table was lowered for this ledger
  changed     text    NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (target, sku)) STRICT;

-- Every order that a ledger has known: the table against duplicates, and the archive.
CREATE TABLE sluice_order (
  sku      text    NOT NULL,
  born     integer NOT NULL,
  serial   text    NOT NULL,
  buyer    blob    NOT NULL,           -- any bytes
  quantity integer NOT NULL CHECK (quantity >= 0),
  status   text    NOT NULL CHECK (status IN ('H','C','X','R')),
  epoch    integer NOT NULL,           -- epoch and ver: the change that said so; an older one changes nothing
  ver      integer NOT NULL,
  at       integer NOT NULL,           -- Unix ms
  missing  text,                       -- since when the ledger does not know it
  PRIMARY KEY (sku, born, serial)) STRICT, WITHOUT ROWID;

-- The units that are left, where the shop has no table of its own.
CREATE TABLE sluice_stock (
  sku text PRIMARY KEY,
  num integer NOT NULL CHECK (num >= 0)) STRICT;

-- What an operator must look at.
CREATE TABLE sluice_conflict (
  id     integer PRIMARY KEY,
  target text    NOT NULL,
  sku    text    NOT NULL,
  epoch  integer NOT NULL,
  ver    integer NOT NULL,
  kind   text    NOT NULL,             -- "stock" "entry" "missing" "lost"
  detail text    NOT NULL,
  found  text    NOT NULL DEFAULT CURRENT_TIMESTAMP,
  solved text,
  UNIQUE (target, sku, epoch, ver, kind)) STRICT;
