-- +goose Up
-- taken: units by which the order has lowered the stock; fewer than its quantity if the stock table had too few.
ALTER TABLE sluice_order ADD COLUMN taken integer NOT NULL DEFAULT 0;
UPDATE sluice_order SET taken = quantity WHERE status = 'C';
