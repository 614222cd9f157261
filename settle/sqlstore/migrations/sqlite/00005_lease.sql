-- +goose Up
-- Until when a settler sends from this cursor, Unix ms; 0: none does. The value tells the settlers apart.
ALTER TABLE sluice_cursor ADD COLUMN leased integer NOT NULL DEFAULT 0;
