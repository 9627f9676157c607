-- From this minute on, rows of minute_sum also contain sums of threads. Earlier releases wrote rows without them.
INSERT INTO watermark (name, value) SELECT 'threads_from', value FROM watermark WHERE name = 'closed_before';
