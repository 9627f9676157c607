-- How values of different times are combined into one number. 0: the values add up. 1: the type is a gauge
-- (profile/sample_types.h).
ALTER TABLE sample_type ADD COLUMN aggregation INTEGER NOT NULL DEFAULT 0;
