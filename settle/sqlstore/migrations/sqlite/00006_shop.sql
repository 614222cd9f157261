-- +goose Up
-- Whose orders these are: the first settler writes the name of its shop, and settlers of another one reject the database.
CREATE TABLE sluice_shop (
  one  integer NOT NULL PRIMARY KEY,
  name text NOT NULL
);
