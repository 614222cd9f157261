-- +goose Up
-- Orders that the shop gives back: it inserts sku and serial in the transaction that cancels the order.
CREATE TABLE sluice_giveback (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sku     varchar(514) COLLATE "C" NOT NULL,
  serial  varchar(258) COLLATE "C" NOT NULL,
  asked   bigint NOT NULL DEFAULT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint), -- Unix ms, as due and done
  due     bigint NOT NULL DEFAULT 0,  -- when it is tried next
  tries   bigint NOT NULL DEFAULT 0,
  done    bigint,
  outcome varchar(32),                -- "refunded" "released"
  UNIQUE (sku, serial));
CREATE INDEX sluice_giveback_due ON sluice_giveback (due) WHERE done IS NULL;
