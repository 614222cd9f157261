-- +goose Up
-- The fields of an entry that was parked, each as a quoted text with escapes: sluice-settle retry reads them.
ALTER TABLE sluice_conflict ADD COLUMN entry mediumtext CHARACTER SET ascii;
