-- +goose Up
-- Whose orders these are: the first settler writes the name of its shop, and settlers of another one reject the database.
CREATE TABLE sluice_shop (
  one  smallint NOT NULL PRIMARY KEY,
  name varchar(64) NOT NULL
);
