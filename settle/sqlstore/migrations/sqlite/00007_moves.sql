-- +goose Up
-- How often the SKU had been moved between databases when this one settled it last: Redis may lose a move.
ALTER TABLE sluice_cursor ADD COLUMN moves integer NOT NULL DEFAULT 0;
