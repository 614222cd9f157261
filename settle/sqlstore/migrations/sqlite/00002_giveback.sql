-- +goose Up
-- Orders that the shop gives back: it inserts sku and serial in the transaction that cancels the order.
CREATE TABLE sluice_giveback (
  id      integer PRIMARY KEY,
  sku     text    NOT NULL,
  serial  text    NOT NULL,
  asked   integer NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), -- Unix ms, as due and done
  due     integer NOT NULL DEFAULT 0,  -- when it is tried next
  tries   integer NOT NULL DEFAULT 0,
  done    integer,
  outcome text,                        -- "refunded" "released"
  UNIQUE (sku, serial)) STRICT;
CREATE INDEX sluice_giveback_due ON sluice_giveback (due) WHERE done IS NULL;
