-- How values of different times are combined into one number: 0: they add up; 1: a gauge (profile/sample_types.h).
ALTER TABLE sample_type ADD COLUMN aggregation INTEGER NOT NULL DEFAULT 0;
